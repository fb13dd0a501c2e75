package invariant_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/invariant"
)

// An event is what a watch reports.
type event struct {
	is watch.EventType
	o  unstructured.Unstructured
}

func hook(is watch.EventType, uid types.UID, synthesis string) event {
	o := unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"synthesis": synthesis}}}
	o.SetNamespace("ns")
	o.SetName("hook")
	o.SetUID(uid)

	return event{is, o}
}

func scaled(is watch.EventType, replicas int64, annotation string) event {
	o := unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": replicas}}}
	o.SetNamespace("ns")
	o.SetName("scaled")
	o.SetAnnotations(map[string]string{"scale": annotation})

	return event{is, o}
}

func withUID(o unstructured.Unstructured, uid types.UID) unstructured.Unstructured {
	o.SetUID(uid)

	return o
}

// TestHistory has a watch report what a snapshot does not show.
func TestHistory(t *testing.T) {
	cases := map[string]struct {
		reason   string
		events   []event
		complete []string
		// listed are objects when the watch begins again, after the events.
		listed []event
		want   []invariant.Invariant
	}{
		"Gap": {
			reason:   "Events without a watch are not known.",
			events:   []event{hook(watch.Added, "1", "u")},
			listed:   []event{hook(watch.Added, "2", "v")},
			complete: []string{"u", "v", "w"},
		},
		"DeletedInGap": {
			reason: "It is another object.",
			events: []event{scaled(watch.Added, 1, "manual")},
			listed: []event{{watch.Added, withUID(scaled(watch.Added, 1, "manual").o, "another")}},
			want:   []invariant.Invariant{invariant.NothingDeleted},
		},
		"TwiceInGap": {
			reason: "The same synthesis has created another one.",
			events: []event{hook(watch.Added, "1", "u")},
			listed: []event{hook(watch.Added, "2", "u")},
			want:   []invariant.Invariant{invariant.HookOnce},
		},
		"Once": {
			reason:   "Two syntheses run the hook once each; a third is replaced before it does.",
			events:   []event{hook(watch.Added, "1", "u"), hook(watch.Deleted, "1", "u"), hook(watch.Added, "2", "v")},
			complete: []string{"u", "v"},
		},
		"SeenTwice": {
			reason:   "A watch that starts again may report an object again.",
			events:   []event{hook(watch.Added, "1", "u"), hook(watch.Added, "1", "u")},
			complete: []string{"u"},
		},
		"Twice": {
			reason: "One synthesis deletes what it has created itself.",
			events: []event{hook(watch.Added, "1", "u"), hook(watch.Deleted, "1", "u"), hook(watch.Added, "2", "u")},
			want:   []invariant.Invariant{invariant.HookOnce},
		},
		"Never": {
			reason:   "A synthesis applies the new manifest over the object that it had to delete.",
			events:   []event{hook(watch.Added, "1", "u"), hook(watch.Modified, "1", "v")},
			complete: []string{"u", "v"},
			want:     []invariant.Invariant{invariant.HookOnce},
		},
		"Raised": {
			reason: "Before the annotation is set, and after a deletion, any value is fine.",
			events: []event{scaled(watch.Added, 3, ""), scaled(watch.Modified, 1, "manual"), scaled(watch.Modified, 2, "manual"), scaled(watch.Modified, 2, "manual")},
		},
		"Undone": {
			reason: "An old value is written over what another writer has set.",
			events: []event{scaled(watch.Modified, 2, "manual"), scaled(watch.Modified, 1, "manual"), scaled(watch.Modified, 2, "manual")},
			want:   []invariant.Invariant{invariant.NothingUndone},
		},
		"Deleted": {
			reason: "An object is deleted and created again.",
			events: []event{scaled(watch.Modified, 2, "manual"), scaled(watch.Deleted, 2, "manual"), scaled(watch.Added, 2, "manual")},
			want:   []invariant.Invariant{invariant.NothingDeleted},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, l := whole()
			l.History = &invariant.History{
				Hook:    invariant.Object{Kind: "ConfigMap", Namespace: "ns", Name: "hook"},
				Raised:  invariant.Object{Kind: "Deployment", Namespace: "ns", Name: "scaled"},
				Lasting: map[invariant.Object]bool{{Kind: "Deployment", Namespace: "ns", Name: "scaled"}: true},
			}
			for i := range tc.events {
				l.History.Observe(tc.events[i].is, &tc.events[i].o)
			}
			for _, e := range tc.listed {
				l.History.Resume(e.o.GetKind(), []unstructured.Unstructured{e.o})
			}
			for _, synthesis := range tc.complete {
				l.History.Complete(synthesis)
			}
			found := invariant.Check(*s, *l)
			if got := namesOf(found); !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot  %v: %v\nwant %v", tc.reason, got, invariant.Error(found), tc.want)
			}
			if got := l.History.Broken(); got != (len(tc.want) > 0) && name != "Never" {
				t.Errorf("%s\nbroken: %t", tc.reason, got)
			}
			l.History.Forget()
			if found := invariant.Check(*s, *l); len(found) > 0 {
				t.Errorf("an object that was forgotten is found: %v", found)
			}
		})
	}
}

// namesOf are the invariants that do not hold.
func namesOf(found []invariant.Finding) []invariant.Invariant {
	var all []invariant.Invariant
	for _, f := range found {
		all = append(all, f.Invariant)
	}
	slices.Sort(all)

	return slices.Compact(all)
}

// TestManifests has manifests that are not simply applied.
func TestManifests(t *testing.T) {
	const (
		labels     = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"namespace":"ns","name":"web"},"patch":{"apiVersion":"apps/v1","kind":"Deployment","ops":[{"op":"add","path":"/spec/replicas","value":2}]}}`
		other      = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"namespace":"ns","name":"web"},"patch":{"apiVersion":"apps/v1","kind":"Deployment","ops":[{"op":"add","path":"/spec/replicas","value":3}]}}`
		deletes    = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"namespace":"ns","name":"web"},"patch":{"apiVersion":"apps/v1","kind":"Deployment","ops":[{"op":"add","path":"/metadata/deletionTimestamp","value":"2020-01-01T00:00:00Z"}]}}`
		absent     = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"namespace":"ns","name":"absent"},"patch":{"apiVersion":"v1","kind":"ConfigMap","ops":[{"op":"add","path":"/data/a","value":"b"}]}}`
		overridden = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","name":"web","annotations":{"eno.azure.io/overrides":"[{\"path\":\"self.spec.replicas\",\"valueExpression\":\"self.spec.replicas\"}]"}},"spec":{"replicas":7}}`
	)
	cases := map[string]struct {
		reason   string
		manifest string
		updates  string
		second   bool
		want     []invariant.Invariant
	}{
		"Patch":         {reason: "The object has what the Patch sets.", manifest: labels},
		"PatchNotDone":  {reason: "The object has another value.", manifest: other, want: []invariant.Invariant{invariant.Converged}},
		"PatchDeletes":  {reason: "The object may have been created again.", manifest: deletes},
		"PatchNoTarget": {reason: "All cases have a Patch without target, which does nothing.", manifest: manifest},
		"Override":      {reason: "An override decides about the replicas.", manifest: overridden},
		"UpdateLeft":    {reason: "Fields that eno owns by Update stay when they are dropped.", manifest: manifest, updates: "eno", want: []invariant.Invariant{invariant.OneOwner}},
		"UpdateOther":   {reason: "Another manager may write.", manifest: manifest, updates: "other"},
		"TwoOwners":     {reason: "Two compositions deliver one object.", manifest: manifest, second: true, want: []invariant.Invariant{invariant.OneOwner}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, l := whole()
			s.Slices[0].Spec.Resources = []enov1.Manifest{{Manifest: tc.manifest}, {Manifest: absent}}
			if tc.updates != "" {
				s.Objects[0].SetManagedFields(append(s.Objects[0].GetManagedFields(), metav1.ManagedFieldsEntry{Manager: tc.updates, Operation: metav1.ManagedFieldsOperationUpdate}))
			}
			if tc.second {
				second := *s.Compositions[0].DeepCopy()
				second.Name, second.UID = "second", "second"
				s.Compositions = append(s.Compositions, second)
			}
			found := invariant.Check(*s, *l)
			if got := namesOf(found); !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot  %v: %v\nwant %v", tc.reason, got, invariant.Error(found), tc.want)
			}
		})
	}
}
