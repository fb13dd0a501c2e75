package delivery

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// lister is a client that only lists compositions. What it calls happens before its
// answer arrives.
type lister struct {
	client.Client

	items     []enov1.Composition
	meanwhile func()
}

func (l *lister) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*enov1.CompositionList).Items = l.items
	l.meanwhile()

	return nil
}

// TestReadBetweenListAndLock has a composition read, or deleted, after it was listed by one that is
// about to delete objects and before that holds the lock. No other event shows that it was read.
func TestReadBetweenListAndLock(t *testing.T) {
	composition := func(name, version, slice string) *enov1.Composition {
		c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: version}}
		c.Status.CurrentSynthesis = &enov1.Synthesis{ResourceSlices: []*enov1.ResourceSliceRef{{Name: slice}}}

		return c
	}
	name := types.NamespacedName{Namespace: "n", Name: "x"}
	cases := map[string]struct {
		reason    string
		meanwhile func(*Deliverer)
		want      string
	}{
		"Newer": {"A later version than the listed one was read.", func(d *Deliverer) {
			c := composition("x", "6", "s2")
			d.swap(name, d.NewView(c, nil))
			d.markLoaded(name, c)
		}, ""},
		"Gone": {"It was deleted.", func(d *Deliverer) {
			d.swap(name, nil)
			d.markLoaded(name, &enov1.Composition{})
		}, ""},
		"Older": {"The version that was read is not the listed one.", func(d *Deliverer) {
			c := composition("x", "4", "s0")
			d.swap(name, d.NewView(c, nil))
			d.markLoaded(name, c)
		}, "n/x"},
		"Unread": {"Nothing happens: it will be read.", func(*Deliverer) {}, "n/x"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			d := idle()
			d.Client = &lister{items: []enov1.Composition{*composition("x", "5", "s1")}, meanwhile: func() { tc.meanwhile(d) }}
			own := composition("own", "7", "s9")
			v := d.NewView(own, []enov1.ResourceSlice{{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
				{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old","namespace":"n"}}`, Deleted: true},
			}}}})
			if err := d.AwaitOthers(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			d.swap(v.Name, v)
			if got := d.Unread(v); got != tc.want {
				t.Errorf("%s\nthe view waits for %q, want %q", tc.reason, got, tc.want)
			}
			if len(d.Backlog.Since) > 0 || d.Backlog.Lists != 0 {
				t.Errorf("%s\nversions are kept after the list: %v", tc.reason, d.Backlog.Since)
			}
			d.markLoaded(name, composition("x", "5", "s1"))
			if got := d.Unread(v); got != "" {
				t.Errorf("%s\nit is read, and the view waits for %q", tc.reason, got)
			}
		})
	}
}
