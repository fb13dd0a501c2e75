package chaos_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

const (
	// Compositions of the load, each with an input and a program of its own.
	kinds  = "kinds"
	hooks  = "hooks"
	scaled = "scaled"
	relic  = "relic"
	// Compositions of single faults.
	ghost = "ghost"
	fresh = "fresh"
	alone = "alone"
	bulk  = "bulk"
	// bulkObjects is how many objects of 8 KiB a synthesis of bulk makes.
	bulkObjects = 100

	customGroup = "chaos.example.com"
	// hold is a finalizer that the load removes some time after a deletion.
	hold = customGroup + "/hold"

	// fillIn prints a text with the values of this synthesis in it. A turn is one of three,
	// so that in each round one object appears and another one is dropped.
	fillIn = readRound + `printf %s "$0" | sed "s/@ROUND@/$round/g; s/@TURN@/$((round % 3))/g; s/@NAMESPACE@/$COMPOSITION_NAMESPACE/g; s/@SUFFIX@/${COMPOSITION_NAMESPACE#test-}/g; s/@SYNTHESIS@/$SYNTHESIS_UUID/g; s/@NAME@/$COMPOSITION_NAME/g"`
)

// templates are what the programs print.
var templates = map[string][]string{
	// A CRD, and objects of its kind in the same composition.
	kinds: {
		`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: leaf@SUFFIX@s.chaos.example.com}
spec:
  group: chaos.example.com
  scope: Namespaced
  names: {kind: Leaf@SUFFIX@, listKind: Leaf@SUFFIX@List, plural: leaf@SUFFIX@s, singular: leaf@SUFFIX@}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`,
		`{apiVersion: chaos.example.com/v1, kind: Leaf@SUFFIX@, metadata: {name: always, namespace: @NAMESPACE@, finalizers: [chaos.example.com/hold]}, spec: {round: "@ROUND@"}}`,
		`{apiVersion: chaos.example.com/v1, kind: Leaf@SUFFIX@, metadata: {name: turn-@TURN@, namespace: @NAMESPACE@, finalizers: [chaos.example.com/hold]}, spec: {round: "@ROUND@"}}`,
	},
	// A Patch of an object of another writer, and an object that is deleted before it is created.
	hooks: {
		`{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: theirs, namespace: @NAMESPACE@, annotations: {eno.azure.io/readiness-group: "1"}}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /data/round, value: "@ROUND@"}]}}`,
		`{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: hook, namespace: @NAMESPACE@, annotations: {eno.azure.io/readiness-group: "1"}}, patch: {apiVersion: v1, kind: ConfigMap, ops: [{op: add, path: /metadata/deletionTimestamp, value: "2020-01-01T00:00:00Z"}]}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: hook, namespace: @NAMESPACE@, annotations: {eno.azure.io/readiness-group: "2"}}, data: {synthesis: "@SYNTHESIS@"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: after, namespace: @NAMESPACE@, annotations: {eno.azure.io/readiness-group: "3"}}, data: {round: "@ROUND@", synthesis: "@SYNTHESIS@"}}`,
	},
	// A Deployment whose replicas are left to another writer. It is paused: there are no pods.
	scaled: {
		`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: scaled
  namespace: "@NAMESPACE@"
  annotations:
    eno.azure.io/overrides: '[{"path": "self.spec.replicas", "condition": "self.metadata.?annotations.?scale.orValue(\"\") == \"manual\"", "valueExpression": "self.spec.replicas"}]'
spec:
  paused: true
  replicas: 0
  selector: {matchLabels: {app: scaled}}
  template: {metadata: {labels: {app: scaled}}, spec: {containers: [{name: main, image: "main:@ROUND@"}]}}
`,
	},
	// An object of an API whose server is down, and one of an API that is there.
	ghost: {
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: ghost, namespace: @NAMESPACE@}}`,
		`{apiVersion: dead.example.com/v1beta1, kind: Ghost, metadata: {name: ghost, namespace: @NAMESPACE@}}`,
	},
	// A kind that nothing has heard of before.
	fresh: {
		`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fresh@SUFFIX@s.chaos.example.com}
spec:
  group: chaos.example.com
  scope: Namespaced
  names: {kind: Fresh@SUFFIX@, listKind: Fresh@SUFFIX@List, plural: fresh@SUFFIX@s, singular: fresh@SUFFIX@}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`,
		`{apiVersion: chaos.example.com/v1, kind: Fresh@SUFFIX@, metadata: {name: fresh, namespace: @NAMESPACE@}}`,
	},
	// Its output differs in every synthesis, and its input never changes.
	alone: {`{apiVersion: v1, kind: ConfigMap, metadata: {name: "@NAME@", namespace: @NAMESPACE@}, data: {synthesis: "@SYNTHESIS@"}}`},
	// An object in a version that is not served all the time.
	relic: {`{apiVersion: chaos.example.com/v1alpha1, kind: Relic@SUFFIX@, metadata: {name: relic, namespace: @NAMESPACE@}, spec: {round: "@ROUND@"}}`},
}

// program is a Synthesizer that prints the templates of a composition.
func (l *load) program(of string) *enov1.Synthesizer {
	l.Helper()
	items := make([]any, 0, len(templates[of]))
	for _, text := range templates[of] {
		var item map[string]any
		must(l, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "namespace: @NAMESPACE@", `namespace: "@NAMESPACE@"`)), &item))
		items = append(items, item)
	}
	data, err := json.Marshal(map[string]any{"kind": "ResourceList", "items": items})
	must(l, err)

	if of == bulk {
		return l.synthesizer(of, "sh", "-c", bulkProgram)
	}

	return l.synthesizer(of, "sh", "-c", fillIn, string(data))
}

// synthesizer has a name of this load, since other loads may be in the same cluster.
func (l *load) synthesizer(name string, command ...string) *enov1.Synthesizer {
	return &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: l.ns + "-" + name}, Spec: enov1.SynthesizerSpec{
		Command: command, Refs: []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap"}}},
	}}
}

func (l *load) suffix() string { return strings.TrimPrefix(l.ns, "test-") }

// leaves and relics are the kinds of CRDs of this load.
func (l *load) leaves() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: customGroup, Version: "v1", Kind: "Leaf" + l.suffix()}
}

func (l *load) relics(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: customGroup, Version: version, Kind: "Relic" + l.suffix()}
}

// delivered are the kinds that compositions deliver here.
func (l *load) delivered() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		l.leaves(), l.relics("v1alpha1"),
	}
}

// isForeign reports whether a cluster-scoped object is that of another load, whose compositions are in
// another namespace.
func (l *load) isForeign(o unstructured.Unstructured) bool {
	return o.GetNamespace() == "" && !strings.Contains(o.GetName(), l.suffix())
}

// relicCRD serves two versions, until the load has it serve one.
func (l *load) relicCRD() *apiextensionsv1.CustomResourceDefinition {
	lower := "relic" + l.suffix()
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		}}
	}

	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: lower + "s." + customGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: customGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "Relic" + l.suffix(), Plural: lower + "s", Singular: lower},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v1alpha1", false)},
		},
	}
}

// object is one that a program is to make.
func (l *load) object(of schema.GroupVersionKind, name string, more map[string]any) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: more}
	o.SetGroupVersionKind(of)
	o.SetNamespace(l.ns)
	o.SetName(name)

	return o
}

// expected are the objects that programs make of the last inputs.
func (l *load) expected() []unstructured.Unstructured {
	configMap, deployment := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	round := func(of string) string { return strconv.Itoa(l.rounds[of]) }
	spec := map[string]any{"round": round(kinds)}

	return []unstructured.Unstructured{
		l.object(l.leaves(), "always", map[string]any{"spec": spec}),
		l.object(l.leaves(), fmt.Sprintf("turn-%d", l.rounds[kinds]%3), map[string]any{"spec": spec}),
		l.object(configMap, "theirs", map[string]any{"data": map[string]any{"own": strconv.Itoa(l.written), "round": round(hooks)}}),
		l.object(configMap, "hook", map[string]any{}),
		l.object(configMap, "after", map[string]any{"data": map[string]any{"round": round(hooks)}}),
		l.object(deployment, scaled, map[string]any{"spec": map[string]any{"replicas": int64(l.replicas), "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "main:" + round(scaled)}},
		}}}}),
		l.object(l.relics("v1alpha1"), relic, map[string]any{"spec": map[string]any{"round": "0"}}),
	}
}
