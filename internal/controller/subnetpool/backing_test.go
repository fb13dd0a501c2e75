package subnetpool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

func child(change func(*v1alpha1.SubnetPool)) *v1alpha1.SubnetPool {
	p := &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", UID: "u", Generation: 1},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/20", Parent: "parent"},
	}
	if change != nil {
		change(p)
	}

	return p
}

func backingIn(phase v1alpha1.SubnetPhase, uid types.UID, change func(*v1alpha1.Subnet)) v1alpha1.Subnet {
	s := ipamrules.BackingSubnet(child(nil))
	s.Status.Phase, s.Status.PoolUID = phase, uid
	if change != nil {
		change(s)
	}

	return *s
}

func TestProtected(t *testing.T) {
	owner := metav1.OwnerReference{Kind: v1alpha1.SubnetPoolClaimKind, Name: "claim", UID: "c"}
	other := metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "x"}
	long := metav1.OwnerReference{Kind: v1alpha1.SubnetPoolClaimKind, Name: strings.Repeat("x", 64), UID: "c"}
	cases := map[string]struct {
		reason string
		has    metav1.ObjectMeta
		want   metav1.ObjectMeta
	}{
		"New": {
			"The finalizer and the UID are written together.",
			metav1.ObjectMeta{UID: "u"},
			metav1.ObjectMeta{UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u"}},
		},
		"Restored": {
			"The UID in a backup stays until the restore is over.",
			metav1.ObjectMeta{UID: "u", Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "old"}},
			metav1.ObjectMeta{UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "old"}},
		},
		"LongName": {
			"The owner reference stays if a label cannot replace it.",
			metav1.ObjectMeta{UID: "u", OwnerReferences: []metav1.OwnerReference{long}},
			metav1.ObjectMeta{
				UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u"},
				OwnerReferences: []metav1.OwnerReference{long},
			},
		},
		"Owned": {
			"The label replaces the owner reference to the claim, and no other.",
			metav1.ObjectMeta{Name: "claim-7kd2p", UID: "u", OwnerReferences: []metav1.OwnerReference{owner, other}},
			metav1.ObjectMeta{
				Name: "claim-7kd2p", UID: "u", Finalizers: []string{v1alpha1.Finalizer}, Annotations: map[string]string{v1alpha1.PoolUIDAnnotation: "u"},
				Labels: map[string]string{v1alpha1.PoolClaimLabel: "claim"}, OwnerReferences: []metav1.OwnerReference{other},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.SubnetPool{ObjectMeta: tc.has}
			if !protected(p) {
				t.Errorf("%s\nnothing is written", tc.reason)
			}
			if diff := cmp.Diff(tc.want, p.ObjectMeta); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if protected(p) {
				t.Error("it is written twice")
			}
		})
	}
}
