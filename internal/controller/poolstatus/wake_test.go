package poolstatus

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// woken records the pools that are enqueued.
type woken struct {
	queue

	names []string
}

func (w *woken) AddAfter(r reconcile.Request, _ time.Duration) { w.names = append(w.names, r.Name) }

func TestSubnetCreated(t *testing.T) {
	const cidr = "10.1.0.0/16"
	cases := map[string]struct {
		reason  string
		subnet  v1alpha1.Subnet
		initial bool
		want    []string
	}{
		"Backing": {"A relist shows the Subnet with its status.", backing("root", cidr, nil), false, []string{"inner"}},
		"Initial": {"All pools are reconciled at the start.", backing("root", cidr, nil), true, nil},
		"Pending": {"Its update follows.", backing("root", cidr, func(s *v1alpha1.Subnet) { s.Status.Phase = "" }), false, nil},
		"Other":   {"It opens no pool.", taken("s", "root", cidr), false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, []v1alpha1.SubnetPool{open(pool("root", "10.0.0.0/8", "")), pool("inner", cidr, "root")}, nil)
			q := &woken{}
			onSubnets(s).Create(t.Context(), event.CreateEvent{Object: &tc.subnet, IsInInitialList: tc.initial}, q)
			if diff := cmp.Diff(tc.want, q.names); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsOutside(t *testing.T) {
	failed := taken("s", "p", "11.0.0.0/24")
	failed.Status.Phase = v1alpha1.SubnetFailed
	cases := map[string]struct {
		reason string
		subnet v1alpha1.Subnet
		want   bool
	}{
		"Inside":  {"The range contains it.", taken("s", "p", "10.0.0.0/24"), false},
		"Outside": {"It has other addresses.", taken("s", "p", "11.0.0.0/24"), true},
		"Larger":  {"A part of it is not in the range.", taken("s", "p", "10.0.0.0/7"), true},
		"Failed":  {"It has no addresses.", failed, false},
		"Invalid": {"Text that is not a prefix has no addresses.", taken("s", "p", "10.0.0.0/99"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isOutside(&tc.subnet, netip.MustParsePrefix("10.0.0.0/8")); got != tc.want {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
}
