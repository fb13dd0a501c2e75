package subnetpoolclaim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

func poolClaim(name string) *v1alpha1.SubnetPoolClaim {
	return &v1alpha1.SubnetPoolClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "new"},
		Spec:       v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "parent", DesiredBlockSize: 20},
	}
}

// ownedBy returns the metadata that a former version wrote.
func ownedBy(c *v1alpha1.SubnetPoolClaim) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolClaimKind))

	return metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, OwnerReferences: []metav1.OwnerReference{*owner, {Kind: "ConfigMap", Name: "x"}}}
}

func TestClusterID(t *testing.T) {
	long := strings.Repeat("a", 200)
	for name, want := range map[string]string{"edge": "pool-claim.edge", "a.b-c": "pool-claim.a.b-c"} {
		if got := clusterID(name); got != want {
			t.Errorf("the clusterID of %s is %s, want %s", name, got, want)
		}
	}
	if got := clusterID(long); len(validation.IsValidLabelValue(got)) > 0 || got == clusterID(long+"a") {
		t.Errorf("the clusterID of a long name is %q, want a label that differs for each name", got)
	}
}

func TestBelongs(t *testing.T) {
	c, former := poolClaim("x"), poolClaim("x")
	former.UID = "old"
	for name, test := range map[string]struct {
		reason string
		meta   metav1.ObjectMeta
		want   bool
	}{
		"Labeled": {"a restore keeps labels", metav1.ObjectMeta{Name: "x", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"}}, true},
		"Random":  {"former versions added random characters to the name", metav1.ObjectMeta{Name: "x-7kd2p", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"}}, true},
		"Forged":  {"a label can be put on any object", metav1.ObjectMeta{Name: "solo", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"}}, false},
		"Other":   {"it is another claim's", metav1.ObjectMeta{Labels: map[string]string{v1alpha1.PoolClaimLabel: "y"}}, false},
		"Owned":   {"a former version made it for this claim", ownedBy(c), true},
		"Former":  {"it was made for a claim that is gone", ownedBy(former), false},
		"Foreign": {"only the name is the same", metav1.ObjectMeta{Name: "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := belongs(&v1alpha1.SubnetClaim{ObjectMeta: test.meta}, c); got != test.want {
				t.Errorf("%s: got %v", test.reason, got)
			}
		})
	}
}

func TestTake(t *testing.T) {
	c := poolClaim("x")
	stored := &v1alpha1.SubnetPool{ObjectMeta: ownedBy(c)}
	if !take(stored, c) {
		t.Error("an object of a former version is not changed")
	}
	want := metav1.ObjectMeta{
		Namespace: "ns", Name: "x", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "x"}},
	}
	if diff := cmp.Diff(want, stored.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if take(stored, c) {
		t.Error("it is changed again")
	}
	long := poolClaim(strings.Repeat("a", 64))
	other := &v1alpha1.SubnetPool{ObjectMeta: ownedBy(long)}
	other.Name = "other"
	if take(other, long) {
		t.Error("an object that no label could connect with its claim loses its owner reference")
	}
	same := &v1alpha1.SubnetPool{ObjectMeta: ownedBy(long)}
	if !take(same, long) || madeFor(same) != long.Name || len(validation.IsValidLabelValue(same.Labels[v1alpha1.PoolClaimLabel])) > 0 {
		t.Errorf("an object with the long name of its claim is labeled %q", same.Labels[v1alpha1.PoolClaimLabel])
	}
}

// A user can edit the label of a claim for a block, but not its clusterID.
func TestEditedLabel(t *testing.T) {
	for name, label := range map[string]string{"Removed": "", "Changed": "y"} {
		t.Run(name, func(t *testing.T) {
			c := poolClaim("x")
			block := &v1alpha1.SubnetClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", Labels: map[string]string{v1alpha1.PoolClaimLabel: label}},
				Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "parent", ClusterID: clusterID("x"), BlockSize: new(int32(20))},
			}
			if madeFor(block) != "x" || !belongs(block, c) {
				t.Fatal("the block is lost")
			}
			if !take(block, c) || block.Labels[v1alpha1.PoolClaimLabel] != "x" {
				t.Errorf("the label is %q", block.Labels[v1alpha1.PoolClaimLabel])
			}
		})
	}
}

// The name of an object can be longer than the value of a label.
func TestLongNames(t *testing.T) {
	c := poolClaim(strings.Repeat("a", 250))
	p := newPool(c, &v1alpha1.SubnetPool{}, "10.0.0.0/20")
	for key, value := range p.Labels {
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Errorf("label %s: %s", key, problems)
		}
	}
	if !belongs(p, c) || madeFor(p) != c.Name {
		t.Error("the pool is not found again")
	}
}

func TestChosen(t *testing.T) {
	c, label := poolClaim("x"), map[string]string{v1alpha1.PoolClaimLabel: "x"}
	pools := []v1alpha1.SubnetPool{
		{ObjectMeta: metav1.ObjectMeta{Name: "x-old", Labels: label}, Spec: v1alpha1.SubnetPoolSpec{Parent: "parent"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "x-far", Labels: label}, Spec: v1alpha1.SubnetPoolSpec{Parent: "other"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "y"}, Spec: v1alpha1.SubnetPoolSpec{Parent: "parent"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: label}, Spec: v1alpha1.SubnetPoolSpec{Parent: "parent"}},
	}
	var names []string
	for _, p := range chosen(c, pools, func(p *v1alpha1.SubnetPool) (client.Object, bool) { return p, p.ParentName() == "parent" }) {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"x", "x-old"}, names); diff != "" {
		t.Errorf("pools of the claim (-want +got):\n%s", diff)
	}
}

func TestNewPool(t *testing.T) {
	c := poolClaim("x")
	want := map[string]string{v1alpha1.PoolClaimLabel: "x", v1alpha1.IPAMLabel: "true", v1alpha1.ParentLabel: "parent"}
	if diff := cmp.Diff(want, newPool(c, &v1alpha1.SubnetPool{}, "10.0.0.0/20").Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	c.Spec.ParentPoolRef = strings.Repeat("p", 64)
	delete(want, v1alpha1.ParentLabel)
	p := newPool(c, &v1alpha1.SubnetPool{}, "10.0.0.0/20")
	if diff := cmp.Diff(want, p.Labels); diff != "" || p.Spec.Parent != c.Spec.ParentPoolRef {
		t.Errorf("a parent whose name is not a label value is %q, labels (-want +got):\n%s", p.Spec.Parent, diff)
	}
}

func TestNewPoolRestoring(t *testing.T) {
	cases := map[string]struct {
		reason string
		record string
		want   map[string]string
	}{
		"New":      {"The guard has not written the record of the parent yet.", "", nil},
		"Settled":  {"The pool is new and can allocate at once.", "u", nil},
		"Restored": {"Subnets of the pool may still be restored.", "old", map[string]string{v1alpha1.PoolUIDAnnotation: "old"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parent := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: tc.record}}}
			if diff := cmp.Diff(tc.want, newPool(poolClaim("x"), parent, "10.0.0.0/20").Annotations); diff != "" {
				t.Errorf("%s\nannotations (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestResultOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		status v1alpha1.SubnetPoolStatus
		want   result
	}{
		"Open": {
			"Blocks can be taken from the pool.",
			v1alpha1.SubnetPoolStatus{UID: "u", CIDR: "10.0.0.0/20"},
			result{v1alpha1.ClaimBound, "x", reasonBound, "pool x has 10.0.0.0/20"},
		},
		"Refused": {
			"The pool has no addresses.",
			v1alpha1.SubnetPoolStatus{Lost: 1},
			result{v1alpha1.ClaimPending, "x", reasonPoolNotReady, "pool x is not ready: see its status"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/20"}, Status: tc.status}
			if diff := cmp.Diff(tc.want, resultOf(p), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
