package invariant_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/cidr"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/test/invariant"
)

const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","name":"web"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1}
}

// object is one that was applied as eno, with the fields of containers of a name.
func object(text, owned string) unstructured.Unstructured {
	o := unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		panic(err)
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(`{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"` + owned + `\"}":{"f:image":{}}}}}}}`))
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "eno", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}})

	return o
}

// counted is an open pool with the status that belongs on it.
func counted(taken v1alpha1.Subnet) v1alpha1.SubnetPool {
	p := v1alpha1.SubnetPool{ObjectMeta: named("p"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/24"}}
	p.Status.CIDR, p.Status.UID = p.Spec.CIDR, p.UID
	blocks, err := cidr.New(netip.MustParsePrefix(p.Spec.CIDR))
	if err = errors.Join(err, blocks.AllocateExact(netip.MustParsePrefix(taken.Spec.CIDR))); err != nil {
		panic(err)
	}
	p.Status = ipamrules.PoolStatus(&p, ipamrules.PoolFigures{All: blocks, Own: blocks, Listed: map[string]string{taken.Spec.CIDR: taken.Spec.ClusterID}}, metav1.Time{})

	return p
}

// whole is a cluster in which everything is as it must be, and the results that its client got.
func whole() (*invariant.Snapshot, *invariant.Ledger) {
	subnet := v1alpha1.Subnet{ObjectMeta: named("p-10-0-0-0-25"), Spec: v1alpha1.SubnetSpec{
		PoolRef: "p", CIDR: "10.0.0.0/25", ClusterID: "a", ClaimRef: &v1alpha1.ClaimReference{Name: "a", UID: "a"},
	}}
	subnet.Status.Phase = v1alpha1.SubnetAllocated
	claim := v1alpha1.SubnetClaim{ObjectMeta: named("a"), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "a", BlockSize: new(int32(25))}}
	claim.Status = v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, AllocatedCIDR: "10.0.0.0/25", SubnetRef: subnet.Name}

	pg := v2alpha2.PodGroup{ObjectMeta: named("group"), Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "workers"}}}}
	pg.Status.Conditions = []v2alpha2.PodGroupCondition{podgroup.Valid(&pg, metav1.Now())}

	composition := enov1.Composition{ObjectMeta: named("app")}
	composition.Status = enov1.CompositionStatus{
		Simplified:       &enov1.SimplifiedStatus{Status: enov1.StatusReady},
		CurrentSynthesis: &enov1.Synthesis{UUID: "u", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "slice"}}},
	}
	slice := enov1.ResourceSlice{ObjectMeta: named("slice"), Spec: enov1.ResourceSliceSpec{SynthesisUUID: "u", Resources: []enov1.Manifest{
		{Manifest: manifest},
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"old"}}`, Deleted: true},
	}}}
	slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&composition, enov1.GroupVersion.WithKind(enov1.CompositionKind))}
	made := object(manifest, "none")
	made.SetManagedFields(nil)

	snapshot := &invariant.Snapshot{
		Inventory:    ipamaudit.Inventory{Subnets: []v1alpha1.Subnet{subnet}, Claims: []v1alpha1.SubnetClaim{claim}, Pools: []v1alpha1.SubnetPool{counted(subnet)}},
		PodGroups:    []v2alpha2.PodGroup{pg},
		Compositions: []enov1.Composition{composition},
		Slices:       []enov1.ResourceSlice{slice},
		Objects:      []unstructured.Unstructured{object(manifest, "none")},
	}
	ledger := &invariant.Ledger{
		Held:   map[invariant.Object]bool{{Kind: v1alpha1.SubnetClaimKind, Namespace: "ns", Name: "a"}: true, {Kind: enov1.CompositionKind, Namespace: "ns", Name: "gone"}: false},
		Blocks: map[types.NamespacedName]string{{Namespace: "ns", Name: "a"}: "10.0.0.0/25"},
		Made:   []unstructured.Unstructured{made},
	}

	return snapshot, ledger
}

// TestCheck breaks every invariant, one at a time.
func TestCheck(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		reason string
		broken func(*invariant.Snapshot, *invariant.Ledger)
		want   []invariant.Invariant
	}{
		"Whole": {reason: "Nothing is wrong.", broken: func(*invariant.Snapshot, *invariant.Ledger) {}},
		"Overlap": {
			reason: "Two have the same addresses.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) {
				second := s.Inventory.Subnets[0]
				second.Name, second.UID, second.Spec.CIDR, second.Spec.ClaimRef = "second", "second", "10.0.0.64/26", nil
				s.Inventory.Subnets = append(s.Inventory.Subnets, second)
			},
			want: []invariant.Invariant{invariant.NoOverlap},
		},
		"Lost": {
			reason: "A claim that was acknowledged is gone, and its Subnet has no claim.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) { s.Inventory.Claims = nil },
			want:   []invariant.Invariant{invariant.NoOrphans, invariant.NothingLost},
		},
		"AnotherBlock": {
			reason: "A claim has another block than before.",
			broken: func(_ *invariant.Snapshot, l *invariant.Ledger) {
				l.Blocks[types.NamespacedName{Namespace: "ns", Name: "a"}] = "10.0.0.128/25"
			},
			want: []invariant.Invariant{invariant.NothingLost},
		},
		"Waiting": {
			reason: "A claim waits.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) {
				c := v1alpha1.SubnetClaim{ObjectMeta: named("b"), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "b", BlockSize: new(int32(25))}}
				s.Inventory.Claims = append(s.Inventory.Claims, c)
			},
			want: []invariant.Invariant{invariant.Bound},
		},
		"WrongStatus": {
			reason: "A pool counts what is not there.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) { s.Inventory.Pools[0].Status.AllocatedCount = 7 },
			want:   []invariant.Invariant{invariant.StatusTrue},
		},
		"Stuck": {
			reason: "A finalizer is left on what must be deleted.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) { s.Slices[0].DeletionTimestamp = &now },
			want:   []invariant.Invariant{invariant.NothingStuck},
		},
		"NotDeleted": {
			reason: "An object that was deleted still exists.",
			broken: func(_ *invariant.Snapshot, l *invariant.Ledger) {
				l.Held[invariant.Object{Kind: enov1.CompositionKind, Namespace: "ns", Name: "app"}] = false
			},
			want: []invariant.Invariant{invariant.NothingStuck},
		},
		"NotReady": {
			reason: "A composition is not Ready.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) {
				s.Compositions[0].Status.Simplified.Status = enov1.StatusReconciling
			},
			want: []invariant.Invariant{invariant.Converged},
		},
		"NotDelivered": {
			reason: "The cluster has something else than the slice.",
			broken: func(s *invariant.Snapshot, l *invariant.Ledger) {
				_ = unstructured.SetNestedField(s.Objects[0].Object, int64(3), "spec", "replicas")
				l.Made = nil
			},
			want: []invariant.Invariant{invariant.Converged},
		},
		"OldInput": {
			reason: "All agree, but on an input that is no longer there.",
			broken: func(_ *invariant.Snapshot, l *invariant.Ledger) {
				_ = unstructured.SetNestedField(l.Made[0].Object, int64(3), "spec", "replicas")
			},
			want: []invariant.Invariant{invariant.InputsTrue},
		},
		"Leftover": {
			reason: "An object was applied that no slice names.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) {
				s.Objects = append(s.Objects, object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"nobodys"}}`, "none"))
			},
			want: []invariant.Invariant{invariant.NoLeftovers},
		},
		"LeftoverSlice": {
			reason: "A slice is of no synthesis that is kept.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) {
				second := *s.Slices[0].DeepCopy()
				second.Name, second.Spec.SynthesisUUID = "second", "v"
				s.Slices = append(s.Slices, second)
			},
			want: []invariant.Invariant{invariant.NoLeftovers},
		},
		"HalfOwned": {
			reason: "A container is left that eno has a part of and does not name.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) {
				s.Objects[0] = object(manifest, "base-os-bash")
				_ = unstructured.SetNestedSlice(s.Objects[0].Object, []any{map[string]any{"name": "base-os-bash"}}, "spec", "template", "spec", "initContainers")
			},
			want: []invariant.Invariant{invariant.WhollyOwned},
		},
		"WrongCondition": {
			reason: "A PodGroup is called valid, and is not.",
			broken: func(s *invariant.Snapshot, _ *invariant.Ledger) { s.PodGroups[0].Spec.SubGroups[0].Name = "Workers" },
			want:   []invariant.Invariant{invariant.GroupsTrue},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, l := whole()
			tc.broken(s, l)
			found := invariant.Check(*s, *l)
			if got := namesOf(found); !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot  %v: %v\nwant %v", tc.reason, got, invariant.Error(found), tc.want)
			}
		})
	}
}
