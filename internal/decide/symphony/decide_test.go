package symphony_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/symphony"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func after(seconds int) *metav1.Time {
	return new(metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second)))
}

// a Symphony that has its finalizer.
func aSymphony(variations ...enov1.Variation) *enov1.Symphony {
	return &enov1.Symphony{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", Generation: 3, Finalizers: []string{enov1.Finalizer}},
		Spec:       enov1.SymphonySpec{Variations: variations},
	}
}

func variation(name string, changes ...func(*enov1.Variation)) enov1.Variation {
	v := enov1.Variation{Synthesizer: enov1.SynthesizerRef{Name: name}}
	for _, change := range changes {
		change(&v)
	}

	return v
}

func on(names ...string) func(*enov1.Variation) {
	return func(v *enov1.Variation) {
		for _, name := range names {
			v.DependsOn = append(v.DependsOn, enov1.VariationDependency{Synthesizer: name})
		}
	}
}

func noted(key, value string) func(*enov1.Variation) {
	return func(v *enov1.Variation) { v.Annotations = map[string]string{key: value} }
}

func labelled(key, value string) func(*enov1.Variation) {
	return func(v *enov1.Variation) { v.Labels = map[string]string{key: value} }
}

func optional(v *enov1.Variation) { v.Optional = true }

// composition of a synthesizer; its name is that and a number.
func composition(name string, changes ...func(*enov1.Composition)) *enov1.Composition {
	synthesizer, _, _ := strings.Cut(name, "-")
	c := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: *after(0)},
		Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: synthesizer}},
	}
	for _, change := range changes {
		change(c)
	}

	return c
}

func born(seconds int) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.CreationTimestamp = *after(seconds) }
}

func needs(names ...string) func(*enov1.Composition) {
	return func(c *enov1.Composition) {
		for _, name := range names {
			c.Spec.DependsOn = append(c.Spec.DependsOn, enov1.CompositionDependency{Name: name, Namespace: "ns"})
		}
	}
}

func has(key, value string) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.Annotations = map[string]string{key: value} }
}

// sliced has the current synthesis of a composition have manifests.
func sliced(c *enov1.Composition) {
	c.Status.CurrentSynthesis.ResourceSlices = []*enov1.ResourceSliceRef{{Name: c.Name + "-0"}}
}

func going(c *enov1.Composition) { c.DeletionTimestamp = after(0) }

// actions is everything that a decision has done, in its order.
func actions(d symphony.Decision) []string {
	var all []string
	if d.Hold {
		all = append(all, "hold")
	}
	changes := func(list []symphony.Change) {
		for _, c := range list {
			all = append(all, "change "+c.From.Name+describe(c.To))
		}
	}
	changes(d.Before)
	for _, c := range d.Delete {
		all = append(all, "delete "+c.Name)
	}
	for _, c := range d.Create {
		all = append(all, "create "+c.GenerateName+describe(c))
	}
	changes(d.After)
	if d.Release {
		all = append(all, "release")
	}

	return all
}

func describe(c *enov1.Composition) string {
	text := ""
	for _, m := range []map[string]string{c.Labels, c.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			text += fmt.Sprintf(" %s=%s", strings.TrimPrefix(key, "eno.azure.io/"), m[key])
		}
	}
	for _, b := range c.Spec.Bindings {
		text += fmt.Sprintf(" %s:%s", b.Key, b.Resource.Name)
	}
	for _, e := range c.Spec.SynthesisEnv {
		text += fmt.Sprintf(" $%s=%s", e.Name, e.Value)
	}
	for _, d := range c.Spec.DependsOn {
		text += " after " + d.Name
	}
	if name := c.Spec.ServiceAccountName; name != "" {
		text += " as " + name
	}

	return text
}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		reason       string
		symphony     *enov1.Symphony
		change       func(*enov1.Symphony)
		compositions []*enov1.Composition
		want         []string
	}{
		"Hold": {
			reason:   "Without the finalizer nothing could be let go in order.",
			symphony: aSymphony(variation("a")), change: func(s *enov1.Symphony) { s.Finalizers = nil },
			want: []string{"hold"},
		},
		"Create": {
			reason:   "Each variation has a composition.",
			symphony: aSymphony(variation("a"), variation("b")),
			want:     []string{"create a-", "create b-"},
		},
		"Account": {
			reason: "A composition is delivered as the ServiceAccount of its variation.",
			symphony: aSymphony(variation("a", func(v *enov1.Variation) { v.ServiceAccountName = "x" }), variation("b"),
				variation("c", func(v *enov1.Variation) { v.ServiceAccountName = "y" })),
			compositions: []*enov1.Composition{composition("b-1", func(c *enov1.Composition) { c.Spec.ServiceAccountName = "x" }), composition("c-1")},
			want:         []string{"create a- as x", "change b-1", "change c-1 as y"},
		},
		"Settled": {
			reason:       "What is right is left alone.",
			symphony:     aSymphony(variation("a", noted("x", "1")), variation("b", on("a"))),
			compositions: []*enov1.Composition{composition("a-1", has("x", "1")), composition("b-1", needs("a-1"))},
		},
		"SameNamespace": {
			reason:   "No namespace is the own one: that is no reason for a synthesis.",
			symphony: aSymphony(variation("a"), variation("b", on("a"))),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1", func(c *enov1.Composition) {
				c.Spec.DependsOn = []enov1.CompositionDependency{{Name: "a-1"}}
			})},
		},
		"Removed": {
			reason:       "Its composition goes.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1")},
			want:         []string{"delete b-1"},
		},
		"Renamed": {
			reason:       "The objects of b may be those of the new composition, which is not synthesized yet.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3))},
			want:         []string{"create a- arbor-control.dev/succeeds=b-1"},
		},
		"RenamedWaits": {
			reason:       "It is created, and not synthesized.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3)), composition("a-1", born(9))},
		},
		"RenamedAtOnce": {
			reason:       "Both were created in the same second, so it cannot be told which was first.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3)), composition("a-1")},
		},
		"RenamedDone": {
			reason:       "It has the objects now.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3)), composition("a-1", born(9), reached(10, -1, -1))},
			want:         []string{"delete b-1"},
		},
		"RenamedEmpty": {
			reason:       "It has no manifests. Deleting b would delete all of its objects, which no guard of pruning sees.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), sliced), composition("a-1", born(9), reached(10, 11, 12), has(enov1.AnnotationSucceeds, "x-1 b-1"))},
		},
		"RenamedFilled": {
			reason:       "It has manifests, so the objects in both stay.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), sliced), composition("a-1", born(9), reached(10, -1, -1), sliced, has(enov1.AnnotationSucceeds, "b-1"))},
			want:         []string{"delete b-1"},
		},
		"RenamedBothEmpty": {
			reason:       "There was nothing before either.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3)), composition("a-1", born(9), reached(10, 11, 12), has(enov1.AnnotationSucceeds, "b-1"))},
			want:         []string{"delete b-1"},
		},
		"RemovedNextToEmpty": {
			reason:       "A variation without manifests that did not replace b does not keep it.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), sliced), composition("a-1", born(9), reached(10, 11, 12))},
			want:         []string{"delete b-1"},
		},
		"DuplicateIsNotReplaced": {
			reason:       "Its Synthesizer still has a composition, so c does not replace it.",
			symphony:     aSymphony(variation("a"), variation("c")),
			compositions: []*enov1.Composition{composition("a-1"), composition("a-2", born(5), reached(6, 7, 8), sliced)},
			want:         []string{"create c-"},
		},
		"RemovedOnly": {
			reason:       "The one that is not synthesized was there before, and takes nothing over.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1", born(5), reached(6, 7, 8))},
			want:         []string{"delete b-1"},
		},
		"RenamedMoves": {
			reason:       "What moves is never on two compositions, also if one of them is deleted later.",
			symphony:     aSymphony(variation("a", noted("x", "1")), variation("c", noted("x", ""))),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), has("x", "2")), composition("c-1", reached(1, 2, 3))},
			want:         []string{"change b-1"},
		},
		"RenamedKeepsUnset": {
			reason:       "No variation sets it, so it moves to none.",
			symphony:     aSymphony(variation("a"), variation("c", noted("x", ""))),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), has("x", "2")), composition("c-1", reached(1, 2, 3))},
			want:         []string{"create a- arbor-control.dev/succeeds=b-1"},
		},
		"RenamedKeepsOrphan": {
			reason:       "Objects of b must outlive it, whatever other variations say of theirs.",
			symphony:     aSymphony(variation("a", noted(enov1.AnnotationDeletionStrategy, "orphan")), variation("c", noted(enov1.AnnotationDeletionStrategy, ""))),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), has(enov1.AnnotationDeletionStrategy, "orphan")), composition("c-1", reached(1, 2, 3))},
			want:         []string{"create a- arbor-control.dev/succeeds=b-1 deletion-strategy=orphan"},
		},
		"RenamedKeepsSuspended": {
			reason:       "A user does not want b to be delivered, which is not about a.",
			symphony:     aSymphony(variation("a", noted(enov1.AnnotationSuspend, "now")), variation("c", noted(enov1.AnnotationSuspend, ""))),
			compositions: []*enov1.Composition{composition("b-1", reached(1, 2, 3), has(enov1.AnnotationSuspend, "then")), composition("c-1", reached(1, 2, 3))},
			want:         []string{"create a- arbor-control.dev/succeeds=b-1 arbor-control.dev/suspend=now"},
		},
		"TwiceWaits": {
			reason:       "The oldest stays, and the other one has the objects until that is synthesized.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1"), composition("a-2", born(5), reached(6, 7, 8))},
		},
		"RemovedGoing": {
			reason:       "It is deleted once.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1", going)},
		},
		"Order": {
			reason:   "The name of b is known when it is there.",
			symphony: aSymphony(variation("a", on("b")), variation("b"), variation("c", on("a", "b"))),
			want:     []string{"create b-"},
		},
		"OrderNext": {
			reason:       "Then a can name it, and c waits for a.",
			symphony:     aSymphony(variation("a", on("b", "b")), variation("b"), variation("c", on("a", "b"))),
			compositions: []*enov1.Composition{composition("b-1")},
			want:         []string{"create a- after b-1"},
		},
		"OrderLast": {
			reason:       "All that c needs is there.",
			symphony:     aSymphony(variation("a", on("b")), variation("b"), variation("c", on("a", "b"))),
			compositions: []*enov1.Composition{composition("b-1"), composition("a-1", needs("b-1"))},
			want:         []string{"create c- after a-1 after b-1"},
		},
		"ChangeWaits": {
			reason: "With its new input and not yet after b, a would be synthesized too early.",
			symphony: aSymphony(variation("a", on("b"), func(v *enov1.Variation) {
				v.Bindings = []enov1.Binding{{Key: "k", Resource: enov1.ResourceBinding{Name: "new"}}}
			}), variation("b")),
			compositions: []*enov1.Composition{composition("a-1")},
			want:         []string{"create b-"},
		},
		"Turned": {
			reason:       "What is no longer needed is dropped first, so that there is never a circle.",
			symphony:     aSymphony(variation("a", on("b")), variation("b")),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1", needs("a-1"))},
			want:         []string{"change b-1", "change a-1 after b-1"},
		},
		"Merged": {
			reason: "The variation goes before the Symphony, by key and by name.",
			symphony: aSymphony(variation("a", func(v *enov1.Variation) {
				v.Bindings = []enov1.Binding{{Key: "k", Resource: enov1.ResourceBinding{Name: "mine"}}, {Key: "k", Resource: enov1.ResourceBinding{Name: "again"}}}
				v.SynthesisEnv = []enov1.EnvVar{{Name: "E", Value: "mine"}}
			})),
			change: func(s *enov1.Symphony) {
				s.Spec.Bindings = []enov1.Binding{{Key: "j", Resource: enov1.ResourceBinding{Name: "all"}}, {Key: "k", Resource: enov1.ResourceBinding{Name: "all"}}}
				s.Spec.SynthesisEnv = []enov1.EnvVar{{Name: "D", Value: "all"}, {Name: "E", Value: "all"}}
			},
			want: []string{"create a- k:mine j:all $E=mine $D=all"},
		},
		"Noted": {
			reason:       "Others may add to a composition; the variation adds to that.",
			symphony:     aSymphony(variation("a", noted("x", "2"), labelled("l", "1"))),
			compositions: []*enov1.Composition{composition("a-1", has("y", "1"))},
			want:         []string{"change a-1 l=1 x=2 y=1"},
		},
		"NotedNothing": {
			reason:   "What is to be empty is not there from the beginning.",
			symphony: aSymphony(variation("a", noted("x", ""), labelled("l", ""))),
			want:     []string{"create a-"},
		},
		"Moved": {
			reason:       "It goes before it comes, and nothing else is done meanwhile.",
			symphony:     aSymphony(variation("a", noted("x", "1")), variation("b", noted("x", "")), variation("c")),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1", has("x", "1")), composition("d-1")},
			want:         []string{"change b-1"},
		},
		"MovedThen": {
			reason:       "It is gone from b, so a gets it.",
			symphony:     aSymphony(variation("a", noted("x", "1")), variation("b", noted("x", "")), variation("c")),
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1"), composition("d-1")},
			want:         []string{"delete d-1", "create c-", "change a-1 x=1"},
		},
		"Twice": {
			reason:       "The oldest stays, and others depend on that one.",
			symphony:     aSymphony(variation("a"), variation("b", on("a"))),
			compositions: []*enov1.Composition{composition("a-1", born(5)), composition("a-2", born(1)), composition("a-3", born(9)), composition("b-1", needs("a-1"))},
			want:         []string{"delete a-1", "delete a-3", "change b-1 after a-2"},
		},
		"TwiceAtOnce": {
			reason:       "All managers must keep the same one of two that are equally old.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-2"), composition("a-1")},
			want:         []string{"delete a-2"},
		},
		"TwiceGoing": {
			reason:       "The oldest does not count if somebody deleted it.",
			symphony:     aSymphony(variation("a")),
			compositions: []*enov1.Composition{composition("a-1", born(1), going), composition("a-2", born(5))},
		},
		"Going": {
			reason:       "It may wait for b, which waits for a new one.",
			symphony:     aSymphony(variation("a"), variation("b", on("a"))),
			compositions: []*enov1.Composition{composition("a-1", going), composition("b-1", needs("a-1"))},
			want:         []string{"create a-"},
		},
		"Duplicates": {
			reason:       "Nobody can tell which is meant, so nothing is touched.",
			symphony:     aSymphony(variation("a"), variation("a", noted("x", "1"))),
			compositions: []*enov1.Composition{composition("a-1"), composition("a-2"), composition("b-1")},
		},
		"Unknown": {
			reason:       "Somebody forgot half of a change, perhaps: b stays.",
			symphony:     aSymphony(variation("a", on("b"))),
			compositions: []*enov1.Composition{composition("a-1", needs("b-1")), composition("b-1")},
		},
		"Circle": {
			reason:   "There is no first.",
			symphony: aSymphony(variation("a", on("b")), variation("b", on("a"))),
		},
		"End": {
			reason:       "All are told that objects stay, and go; also those that somebody deleted.",
			symphony:     aSymphony(variation("a"), variation("a")),
			change:       func(s *enov1.Symphony) { s.DeletionTimestamp = after(0) },
			compositions: []*enov1.Composition{composition("a-1"), composition("b-1", going)},
			want:         []string{"change a-1 symphony-deleting=true", "change b-1 symphony-deleting=true", "delete a-1"},
		},
		"EndGoing": {
			reason:   "It waits for them.",
			symphony: aSymphony(variation("a")), change: func(s *enov1.Symphony) { s.DeletionTimestamp = after(0) },
			compositions: []*enov1.Composition{composition("a-1", going, func(c *enov1.Composition) { c.Labels = map[string]string{enov1.LabelSymphonyDeleting: "true"} })},
		},
		"Ended": {
			reason:   "Nothing is left.",
			symphony: aSymphony(variation("a")), change: func(s *enov1.Symphony) { s.DeletionTimestamp = after(0) },
			want: []string{"release"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(tc.symphony)
			}
			d := symphony.Decide(symphony.View{Symphony: tc.symphony, Compositions: tc.compositions}, epoch)
			if diff := cmp.Diff(tc.want, actions(d)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if d.Idle() != (len(tc.want) == 0) {
				t.Errorf("%s Idle is %t", tc.reason, d.Idle())
			}
		})
	}
}

// A created composition can be found again, and is deleted with its Symphony.
func TestOwner(t *testing.T) {
	d := symphony.Decide(symphony.View{Symphony: aSymphony(variation("a"))}, epoch)
	c := d.Create[0]
	want := []metav1.OwnerReference{{APIVersion: "eno.azure.io/v1", Kind: "Symphony", Name: "s", UID: "u", Controller: new(true), BlockOwnerDeletion: new(true)}}
	if diff := cmp.Diff(want, c.OwnerReferences); diff != "" || c.Namespace != "ns" || c.Spec.Synthesizer.Name != "a" {
		t.Errorf("%+v\n%s", c, diff)
	}
}
