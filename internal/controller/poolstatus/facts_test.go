package poolstatus

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// A store answers from slices, by the indexes that kube registers.
type store struct {
	client.Reader

	pools   []v1alpha1.SubnetPool
	subnets []v1alpha1.Subnet
	indexes map[string]client.IndexerFunc
}

func newStore(t *testing.T, pools []v1alpha1.SubnetPool, subnets []v1alpha1.Subnet) *store {
	t.Helper()
	s := &store{pools: pools, subnets: subnets, indexes: map[string]client.IndexerFunc{}}
	if err := kube.IndexSubnets(t.Context(), s); err != nil {
		t.Fatal(err)
	}

	return s
}

func (s *store) IndexField(_ context.Context, _ client.Object, field string, values client.IndexerFunc) error {
	s.indexes[field] = values

	return nil
}

func (s *store) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	i := slices.IndexFunc(s.pools, func(p v1alpha1.SubnetPool) bool { return p.Name == key.Name })
	if p, ok := o.(*v1alpha1.SubnetPool); ok && i >= 0 {
		*p = s.pools[i]

		return nil
	}

	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *store) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	field := o.FieldSelector.Requirements()[0]
	has := func(c client.Object) bool { return slices.Contains(s.indexes[field.Field](c), field.Value) }
	switch l := list.(type) {
	case *v1alpha1.SubnetPoolList:
		for i := range s.pools {
			if has(&s.pools[i]) {
				l.Items = append(l.Items, s.pools[i])
			}
		}
	case *v1alpha1.SubnetList:
		for i := range s.subnets {
			if has(&s.subnets[i]) {
				l.Items = append(l.Items, s.subnets[i])
			}
		}
	}

	return nil
}

func pool(name, cidr, parent string) v1alpha1.SubnetPool {
	return v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1", Generation: 1, Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: cidr, Parent: parent},
	}
}

func open(p v1alpha1.SubnetPool) v1alpha1.SubnetPool {
	p.Status = v1alpha1.SubnetPoolStatus{CIDR: p.Spec.CIDR, UID: p.UID, Parent: p.Spec.Parent}

	return p
}

func taken(name, of, cidr string) v1alpha1.Subnet {
	return v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v1alpha1.SubnetSpec{PoolRef: of, CIDR: cidr},
		Status:     v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated},
	}
}

func backing(of, cidr string, change func(*v1alpha1.Subnet)) v1alpha1.Subnet {
	const child = "inner"
	s := taken("pool."+child, of, cidr)
	s.Finalizers = []string{v1alpha1.Finalizer}
	s.Spec.Backs = &v1alpha1.PoolReference{Name: child, UID: types.UID(child)}
	s.Status.PoolUID, s.Status.UID = types.UID(child), s.UID
	if change != nil {
		change(&s)
	}

	return s
}

func TestStrays(t *testing.T) {
	root, inner := pool("root", "10.0.0.0/8", ""), pool("inner", "10.1.0.0/16", "root")
	stray := ipamrules.StraySubnet{Name: "s", CIDR: "10.1.2.0/24", Pool: "inner", Exists: true, Parent: "root"}
	backed, orphan := stray, ipamrules.StraySubnet{Name: "s", CIDR: "10.1.2.0/24", Pool: "gone"}
	backed.Backed = true
	foreign := taken("s", "inner", "10.1.2.0/24")
	foreign.Status.UID = "old"
	cases := map[string]struct {
		reason  string
		decided v1alpha1.SubnetPool
		others  []v1alpha1.SubnetPool
		subnets []v1alpha1.Subnet
		want    []ipamrules.StraySubnet
	}{
		"Own":       {"Subnets of the pool are not strays.", root, nil, []v1alpha1.Subnet{taken("s", "root", "10.1.2.0/24")}, nil},
		"Closed":    {"A child pool that was never opened has Subnets.", root, []v1alpha1.SubnetPool{inner}, []v1alpha1.Subnet{taken("s", "inner", "10.1.2.0/24")}, []ipamrules.StraySubnet{stray}},
		"Open":      {"An open pool keeps its Subnets.", root, []v1alpha1.SubnetPool{open(inner)}, []v1alpha1.Subnet{taken("s", "inner", "10.1.2.0/24")}, nil},
		"Backed":    {"The pool never allocates the block of a child.", root, []v1alpha1.SubnetPool{inner}, []v1alpha1.Subnet{taken("s", "inner", "10.1.2.0/24"), backing("root", "10.1.0.0/16", nil)}, []ipamrules.StraySubnet{backed}},
		"Orphan":    {"The pool of a Subnet is gone.", root, nil, []v1alpha1.Subnet{taken("s", "gone", "10.1.2.0/24")}, []ipamrules.StraySubnet{orphan}},
		"Elsewhere": {"It is not in the range.", root, nil, []v1alpha1.Subnet{taken("s", "gone", "11.1.2.0/24")}, nil},
		"Restored":  {"A status from a backup counts as none.", root, []v1alpha1.SubnetPool{inner}, []v1alpha1.Subnet{foreign}, nil},
		"Parent":    {"A pool lies in its own block, whether the parent is open or not.", inner, []v1alpha1.SubnetPool{root}, []v1alpha1.Subnet{backing("root", "10.1.0.0/16", nil)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, append(tc.others, tc.decided), tc.subnets)
			facts, err := gatherFacts(t.Context(), s, &tc.decided, netip.MustParsePrefix(tc.decided.Spec.CIDR))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, facts.Strays); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBacking(t *testing.T) {
	const cidr = "10.1.0.0/16"
	found := ipamrules.Backing{Prefix: netip.MustParsePrefix(cidr)}
	cases := map[string]struct {
		reason  string
		subnets []v1alpha1.Subnet
		want    ipamrules.Backing
	}{
		"Fits":      {"It is Allocated, protected and bound.", []v1alpha1.Subnet{backing("root", cidr, nil)}, found},
		"None":      {"The guard has not created it yet.", nil, ipamrules.Backing{}},
		"Pending":   {"It is not decided.", []v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) { s.Status.Phase = "" })}, ipamrules.Backing{}},
		"Bare":      {"It could be deleted under the pool.", []v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) { s.Finalizers = nil })}, ipamrules.Backing{}},
		"Deleting":  {"It is being deleted.", []v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) { s.DeletionTimestamp = new(metav1.Now()) })}, ipamrules.Backing{}},
		"OtherPool": {"It is bound to a pool of the past.", []v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) { s.Status.PoolUID = "old" })}, ipamrules.Backing{}},
		"OtherName": {"A Subnet that names another pool is released with that.", []v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) { s.Spec.Backs.Name = "x" })}, ipamrules.Backing{}},
		"Elsewhere": {"It is a Subnet of another pool than the parent.", []v1alpha1.Subnet{backing("far", cidr, nil)}, ipamrules.Backing{}},
		"Second": {"One that fits is enough, whatever comes of the other.", []v1alpha1.Subnet{
			backing("root", "10.9.0.0/16", func(s *v1alpha1.Subnet) { s.Name, s.UID, s.Status.Phase = "y", "y", "" }),
			backing("root", cidr, nil),
		}, found},
		"Failed": {
			"The parent has no such block.",
			[]v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) {
				s.Status.Phase = v1alpha1.SubnetFailed
				s.Status.Conditions = []metav1.Condition{{Type: "Ready", Reason: "Overlap", Message: "it overlaps x"}}
			})},
			ipamrules.Backing{Reason: "Overlap", Message: "the parent root has no such block: it overlaps x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inner := pool("inner", cidr, "root")
			s := newStore(t, []v1alpha1.SubnetPool{open(pool("root", "10.0.0.0/8", "")), inner}, tc.subnets)
			facts, err := gatherFacts(t.Context(), s, &inner, netip.MustParsePrefix(cidr))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, facts.Backing, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" || !facts.HasParent {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// cached is a client that reads from a store.
type cached struct {
	client.Client
	*store
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.store.Get(ctx, key, o, options...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.store.List(ctx, list, options...)
}

// A pool that waits for the block of its SubnetPoolClaim has that message, and is not rejected.
func TestExplain(t *testing.T) {
	const cidr = "10.1.0.0/16"
	label := map[string]string{v1alpha1.PoolClaimLabel: "inner"}
	cases := map[string]struct {
		reason  string
		labels  map[string]string
		subnets []v1alpha1.Subnet
		error   string
		want    ipamrules.PoolDecision
	}{
		"Claimed": {"The SubnetPoolClaim may not exist.", label, nil, "", ipamrules.PoolDecision{Reason: reasonNoBlock, Message: "no Subnet of the parent root backs this pool: " +
			"SubnetPoolClaim inner gets one; create that again if it does not exist"}},
		"Manual":  {"The guard creates the Subnet.", nil, nil, "", ipamrules.PoolDecision{}},
		"Quota":   {"The guard could not create the Subnet.", nil, nil, "exceeded quota", ipamrules.PoolDecision{Reason: reasonNotCreated, Message: "exceeded quota"}},
		"Pending": {"The Subnet is not decided.", label, []v1alpha1.Subnet{backing("root", cidr, func(s *v1alpha1.Subnet) { s.Status.Phase = "" })}, "exceeded quota", ipamrules.PoolDecision{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inner := pool("inner", cidr, "root")
			inner.Labels = tc.labels
			s := newStore(t, []v1alpha1.SubnetPool{open(pool("root", "10.0.0.0/8", "")), inner}, tc.subnets)
			r := &Reconciler{client: cached{store: s}, obstacles: NewObstacles()}
			r.obstacles.Set(client.ObjectKeyFromObject(&inner), tc.error)
			got, err := r.decide(t.Context(), &inner)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
