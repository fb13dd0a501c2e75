package delivery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestIsImmutable(t *testing.T) {
	at := field.NewPath("spec", "selector")
	invalid := func(all ...*field.Error) error {
		return fmt.Errorf("cannot apply it: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", all))
	}
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"None":           {reason: "Nothing went wrong."},
		"Other":          {reason: "It is no answer of a server.", err: errors.New("field is immutable")},
		"Field":          {reason: "That of most kinds.", err: invalid(field.Invalid(at, "x", "field is immutable")), want: true},
		"StatefulSet":    {reason: "That of StatefulSets.", err: invalid(field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")), want: true},
		"ConfigMap":      {reason: "That of an immutable ConfigMap.", err: invalid(field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")), want: true},
		"RoleBinding":    {reason: "That of RoleBindings.", err: invalid(field.Invalid(field.NewPath("roleRef"), "x", "cannot change roleRef")), want: true},
		"Service":        {reason: "That of Services.", err: invalid(field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), "x", "may not change once set")), want: true},
		"PriorityClass":  {reason: "That of PriorityClasses.", err: invalid(field.Forbidden(field.NewPath("value"), "may not be changed in an update.")), want: true},
		"CustomResource": {reason: "That of rules in CRDs.", err: invalid(field.Invalid(at, "x", "Value is immutable")), want: true},
		"Both":           {reason: "The replacement is rehearsed, which finds the others.", err: invalid(field.Required(at, "no"), field.Invalid(at, "x", "field is immutable")), want: true},
		"Required":       {reason: "It is invalid for another reason.", err: invalid(field.Required(at, "it is immutable later")), want: false},
		"Invalid":        {reason: "So is a bad value.", err: invalid(field.Invalid(at, "x", "must be a DNS label"))},
		"Conflict":       {reason: "Others wrote first.", err: apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("field is immutable"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := delivery.IsImmutable(tc.err); got != tc.want {
				t.Errorf("%s\nIsImmutable(%v): %t", tc.reason, tc.err, got)
			}
		})
	}
}

func TestDecideReplacement(t *testing.T) {
	live := func(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetUID("now")
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: delivery.Manager, Operation: metav1.ManagedFieldsOperationApply}})
		for _, change := range changes {
			change(o)
		}

		return o
	}
	shared := func(o *unstructured.Unstructured) {
		o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "eno-edge", Operation: metav1.ManagedFieldsOperationApply}))
	}
	foreign := func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }
	going := func(o *unstructured.Unstructured) {
		o.SetDeletionTimestamp(new(metav1.Now()))
		o.SetFinalizers([]string{"a/b"})
	}
	cases := map[string]struct {
		reason   string
		gvk      schema.GroupVersionKind
		live     *unstructured.Unstructured
		patch    bool
		ours     bool
		sharer   string
		unread   string
		replaced types.UID
		want     delivery.Verb
		text     string
	}{
		"Job":         {reason: "It is replaced.", gvk: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, live: live(), want: delivery.Delete},
		"Interrupted": {reason: "The deletion was announced, and the manager killed.", live: live(), replaced: "now", want: delivery.Delete},
		"Twice":       {reason: "Once per synthesis.", live: live(), replaced: "before", want: delivery.Leave, text: "was replaced in this synthesis already"},
		"Patch":       {reason: "Other clients create the target.", patch: true, live: live(), ours: true, want: delivery.Leave, text: "not used for a Patch"},
		"Patched":     {reason: "A target that is gone is not created.", patch: true, want: delivery.Leave, text: "not used for a Patch"},
		"Gone":        {reason: "It was deleted meanwhile.", want: delivery.Wait},
		"Going":       {reason: "It waits until it is gone.", live: live(going), want: delivery.Wait, text: "finalizers a/b"},
		"Foreign":     {reason: "Objects of others are not deleted.", live: live(foreign), want: delivery.Leave, text: "was not delivered by eno"},
		"Stolen":      {reason: "One that was delivered is known by its UID.", live: live(foreign), ours: true, want: delivery.Delete},
		"Plane":       {reason: "Another control plane would lose it.", live: live(shared), ours: true, want: delivery.Leave, text: "another control plane delivers, too, as field manager eno-edge"},
		"Shared":      {reason: "Another composition would lose it.", live: live(), sharer: "n/b", want: delivery.Leave, text: "composition n/b wants, too"},
		"Unread":      {reason: "Another composition may lose it.", live: live(), unread: "n/b", want: delivery.Wait, text: "whether composition n/b wants it"},
		"Unread kind": {reason: "It is left, whichever composition wants it.", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, live: live(), unread: "n/b", want: delivery.Leave},
		"Claim":       {reason: "Data would be lost.", gvk: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, live: live(), want: delivery.Leave, text: "not used for a PersistentVolumeClaim"},
		"Volume":      {reason: "Data would be lost.", gvk: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, live: live(), want: delivery.Leave},
		"Namespace":   {reason: "Everything in it would be lost.", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, live: live(), want: delivery.Leave},
		"CRD":         {reason: "All objects of the kind would be lost.", gvk: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, live: live(), want: delivery.Leave},
		"OtherGroup":  {reason: "A kind of another group is another kind.", gvk: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Namespace"}, live: live(), want: delivery.Delete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &delivery.Resource{GVK: tc.gvk}
			if tc.patch {
				r.Patch = 1
			}
			a := delivery.DecideReplacement(r, delivery.Rejection{Live: tc.live, Ours: tc.ours, Replaced: tc.replaced, Sharer: tc.sharer, Unread: tc.unread})
			if a.Verb != tc.want || !strings.Contains(a.Reason, tc.text) || a.Reason == "" {
				t.Errorf("%s\nDecideReplacement(...): %+v", tc.reason, a)
			}
		})
	}
}

func TestPropagation(t *testing.T) {
	for kind, want := range map[schema.GroupVersionKind]metav1.DeletionPropagation{
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}:        metav1.DeletePropagationOrphan,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:         metav1.DeletePropagationBackground,
		{Group: "example.com", Version: "v1", Kind: "StatefulSet"}: metav1.DeletePropagationBackground,
	} {
		if got := delivery.Propagation(&delivery.Resource{GVK: kind}); got != want {
			t.Errorf("Propagation(%s): %s, want %s", kind, got, want)
		}
	}
}

func TestMayReplace(t *testing.T) {
	override := func(path string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"eno.azure.io/overrides":"[{\"path\":\"%s\",\"value\":\"true\"}]"}}}`, path)
	}
	cases := map[string]struct {
		reason   string
		manifest string
		above    string
		deleted  bool
		want     bool
	}{
		"Plain":      {reason: "Nothing asks for it.", manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`},
		"Inherited":  {reason: "The composition asks for it.", manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, above: "true", want: true},
		"Tombstone":  {reason: "It is deleted anyway.", manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, above: "true", deleted: true},
		"Annotation": {reason: "An override may ask for it.", manifest: override("self.metadata.annotations['" + enov1.AnnotationReplaceOnConflict + "']"), want: true},
		"Data":       {reason: "This override cannot.", manifest: override("self.data.a")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := delivery.NewReader().Read(enov1.Manifest{Manifest: tc.manifest, Deleted: tc.deleted}, map[string]string{enov1.AnnotationReplaceOnConflict: tc.above})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.MayReplace(); got != tc.want {
				t.Errorf("%s\nMayReplace(): %t", tc.reason, got)
			}
		})
	}
}

// TestReplacedStatefulSet has StatefulSets, whose pods are kept for the next one.
func TestReplacedStatefulSet(t *testing.T) {
	set := func(selector string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		text := `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","uid":"now","managedFields":[{"manager":"eno","operation":"Apply"}]},"spec":{"serviceName":"x","selector":` + selector + `}}`
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}

		return o
	}
	const app = `{"matchLabels":{"app":"db","tier":"a"}}`
	cases := map[string]struct {
		reason        string
		group         string
		live, desired string
		want          delivery.Verb
	}{
		"Same":        {reason: "Its pods are adopted.", group: "apps", live: app, desired: app, want: delivery.Delete},
		"Written":     {reason: "It selects the same, and is written in another way.", group: "apps", live: `{"matchLabels":{"app":"db"},"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]}]}`, desired: `{"matchExpressions":[{"key":"tier","operator":"In","values":["b","a"]}],"matchLabels":{"app":"db"}}`, want: delivery.Delete},
		"Value":       {reason: "Its pods would be left behind and occupy the names.", group: "apps", live: app, desired: `{"matchLabels":{"app":"web","tier":"a"}}`, want: delivery.Leave},
		"More":        {reason: "So they would if the selector wants more labels.", group: "apps", live: `{"matchLabels":{"app":"db"}}`, desired: app, want: delivery.Leave},
		"Expressions": {reason: "Expressions select, too.", group: "apps", live: `{"matchLabels":{"app":"db"},"matchExpressions":[{"key":"x","operator":"Exists"}]}`, desired: `{"matchLabels":{"app":"db"}}`, want: delivery.Leave},
		"Invalid":     {reason: "It is not known what this selects.", group: "apps", live: app, desired: `{"matchLabels":7}`, want: delivery.Leave},
		"None":        {reason: "It selects nothing.", group: "apps", live: app, desired: `null`, want: delivery.Leave},
		"OtherGroup":  {reason: "What this kind owns is deleted with it.", group: "example.com", live: app, desired: `{}`, want: delivery.Delete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &delivery.Resource{GVK: schema.GroupVersionKind{Group: tc.group, Version: "v1", Kind: "StatefulSet"}, Object: set(tc.desired)}
			a := delivery.DecideReplacement(r, delivery.Rejection{Live: set(tc.live)})
			if a.Verb != tc.want || a.Verb == delivery.Leave && !strings.Contains(a.Reason, "spec.selector changes") {
				t.Errorf("%s\nDecideReplacement(...): %+v", tc.reason, a)
			}
		})
	}
}

// TestPatchIsNotReplaced has the setting on a Patch and on its composition: its target is
// never deleted for it.
func TestPatchIsNotReplaced(t *testing.T) {
	yes := map[string]string{enov1.AnnotationReplaceOnConflict: "true"}
	for name, annotations := range map[string]string{"Inherited": "", "Own": fmt.Sprintf(`,"annotations":{%q:"true"}`, enov1.AnnotationReplaceOnConflict)} {
		t.Run(name, func(t *testing.T) {
			manifest := `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a","namespace":"n"` + annotations + `},"patch":{"apiVersion":"batch/v1","kind":"Job","ops":[]}}`
			r, err := delivery.NewReader().Read(enov1.Manifest{Manifest: manifest}, yes)
			if err != nil {
				t.Fatal(err)
			}
			if !r.IsPatch() || r.ReplaceOnConflict {
				t.Errorf("the target of a Patch would be replaced: %+v", r.Settings)
			}
		})
	}
}

func TestReplaceOnConflictSetting(t *testing.T) {
	cases := map[string]struct {
		reason           string
		own, composition string
		want             bool
		warnings         int
	}{
		"Absent":    {reason: "Nothing is deleted unless it is asked for."},
		"Own":       {reason: "The manifest asks for it.", own: "true", want: true},
		"Inherited": {reason: "As the other settings, it falls back to the composition's.", composition: "true", want: true},
		"Own first": {reason: "The manifest goes first.", own: "false", composition: "true"},
		"Invalid":   {reason: "Only true is true.", own: "yes", warnings: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manifest, above := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, map[string]string{}
			if tc.own != "" {
				manifest = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{%q:%q}}}`, enov1.AnnotationReplaceOnConflict, tc.own)
			}
			if tc.composition != "" {
				above[enov1.AnnotationReplaceOnConflict] = tc.composition
			}
			r, err := delivery.NewReader().Read(enov1.Manifest{Manifest: manifest}, above)
			if err != nil {
				t.Fatal(err)
			}
			if r.ReplaceOnConflict != tc.want || len(r.Warnings()) != tc.warnings {
				t.Errorf("%s\nReplaceOnConflict: %t, warnings %v", tc.reason, r.ReplaceOnConflict, r.Warnings())
			}
			if all := r.Object.GetAnnotations(); len(all) > 0 {
				t.Errorf("%s\nthe object has %v", tc.reason, all)
			}
		})
	}
}
