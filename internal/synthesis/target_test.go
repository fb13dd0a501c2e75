package synthesis

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

func TestResolve(t *testing.T) {
	v1 := schema.GroupVersion{Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1})
	mapper.Add(v1.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(v1.WithKind("Node"), meta.RESTScopeRoot)
	restricted := tenancy.Rules{Scope: tenancy.Namespace}
	cases := map[string]struct {
		reason string
		rules  tenancy.Rules
		kind   string
		// object that the Synthesizer and the Composition bind; "" if they do not.
		synthesizer, composition enov1.ResourceBinding
		want                     string
		forbidden                bool
	}{
		"Own":           {reason: "It is in the namespace.", rules: restricted, kind: "ConfigMap", composition: enov1.ResourceBinding{Namespace: "n", Name: "x"}, want: "n/x"},
		"Other":         {reason: "It is not.", rules: restricted, kind: "ConfigMap", composition: enov1.ResourceBinding{Namespace: "m", Name: "x"}, forbidden: true},
		"OtherUnbound":  {reason: "Without restriction it need not be.", kind: "ConfigMap", composition: enov1.ResourceBinding{Namespace: "m", Name: "x"}, want: "m/x"},
		"Cluster":       {reason: "A cluster-scoped object is in no namespace.", rules: restricted, kind: "Node", composition: enov1.ResourceBinding{Name: "x"}, forbidden: true},
		"Disguised":     {reason: "Naming one does not change that.", rules: restricted, kind: "Node", composition: enov1.ResourceBinding{Namespace: "n", Name: "x"}, forbidden: true},
		"ClusterOpen":   {reason: "Without restriction it does not matter.", kind: "Node", composition: enov1.ResourceBinding{Namespace: "n", Name: "x"}, want: "/x"},
		"BySynthesizer": {reason: "A Synthesizer may choose it.", rules: restricted, kind: "Node", synthesizer: enov1.ResourceBinding{Name: "x"}, want: "/x"},
		"Elsewhere":     {reason: "Also in another namespace.", rules: restricted, kind: "ConfigMap", synthesizer: enov1.ResourceBinding{Namespace: "m", Name: "x"}, want: "m/x"},
		"Nowhere":       {reason: "A namespaced object needs a namespace.", kind: "ConfigMap", synthesizer: enov1.ResourceBinding{Name: "x"}},
		"Unserved":      {reason: "A kind must exist.", rules: restricted, kind: "Tree", composition: enov1.ResourceBinding{Namespace: "n", Name: "x"}},
		"Nothing":       {reason: "Something must be bound.", rules: restricted, kind: "ConfigMap"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, s := &enov1.Composition{}, &enov1.Synthesizer{}
			c.Namespace = "n"
			s.Spec.Refs = []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: tc.kind, Namespace: tc.synthesizer.Namespace, Name: tc.synthesizer.Name}}}
			if tc.composition.Name != "" {
				c.Spec.Bindings = []enov1.Binding{{Key: "in", Resource: tc.composition}}
			}
			target, problem := Resolve(mapper, decide.Bind(c, s, tc.rules)[0], tc.rules)
			got := ""
			if problem == nil {
				got = target.Key.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || tc.forbidden != (problem != nil && problem.Forbidden != nil) {
				t.Errorf("%s\n%+v\n%s", tc.reason, problem, diff)
			}
		})
	}
}
