package subnet

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/release"
	"github.com/arbor-control/arbor/internal/kube"
)

const action = "Judge"

// decide reads what the phase depends on, and writes it. The pool is read after the Subnet was
// known in the version that is decided on: a pool that was found empty to be deleted, or to give up
// addresses, is seen as such.
func (r *Reconciler) decide(ctx context.Context, s *v1alpha1.Subnet) error {
	b, ok := block(s)
	if !ok {
		return r.apply(ctx, s, ipamrules.SubnetDecision{
			Phase: v1alpha1.SubnetFailed, Reason: ipamrules.ReasonOutsidePool, Message: fmt.Sprintf("%q is not a CIDR", s.Spec.CIDR),
		})
	}
	p, err := r.pools.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.PoolRef})
	if err != nil {
		return err
	}
	var pool *ipamrules.PoolRanges
	if p != nil {
		pool = ipamrules.PoolRangesOf(p)
	}
	others, err := r.neighbors(ctx, s, b)
	if err != nil {
		return err
	}

	return r.apply(ctx, s, ipamrules.DecideSubnet(b, pool, others))
}

// neighbors returns the Subnets of the pool that may overlap a block or have its clusterID. They are
// read from the informer's store, which holds the block that is decided on; the decision needs no
// more of a snapshot. The proof compares pairs, so the store may change between these reads.
func (r *Reconciler) neighbors(ctx context.Context, s *v1alpha1.Subnet, b ipamrules.SubnetFacts) (iter.Seq[ipamrules.SubnetFacts], error) {
	near, err := kube.SubnetsNear(ctx, r.client, s.Namespace, s.Spec.PoolRef, b.Prefix)
	if err != nil {
		return nil, err
	}
	if b.Claimed {
		same, err := kube.SubnetsOfCluster(ctx, r.client, s.Namespace, s.Spec.PoolRef, s.Spec.ClusterID)
		if err != nil {
			return nil, err
		}
		near = slices.Concat(near, same)
	}

	return func(yield func(ipamrules.SubnetFacts) bool) {
		for i := range near {
			if o, ok := block(&near[i]); ok && !yield(o) {
				return
			}
		}
	}, nil
}

// apply writes a decision, on condition that the Subnet is in the version that was decided on.
func (r *Reconciler) apply(ctx context.Context, s *v1alpha1.Subnet, v ipamrules.SubnetDecision) error {
	if v.Phase == v1alpha1.SubnetPending {
		// Nothing is written: a new resourceVersion would make this Subnet younger
		// than those that were created after it, and they would win.
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, v.Reason, action, "%s", v.Message)

		return nil
	}
	if err := r.hold(ctx, s); err != nil {
		return err
	}
	s.Status.Phase, s.Status.UID = v.Phase, s.UID
	ready := metav1.ConditionFalse
	if v.Phase == v1alpha1.SubnetAllocated {
		ready = metav1.ConditionTrue
		s.Status.AllocatedAt = new(metav1.NewTime(r.now()))
	}
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: v.Reason, Message: v.Message, ObservedGeneration: s.Generation,
	})
	if err := r.client.Status().Update(ctx, s); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("cannot write the phase of Subnet %s/%s: %w", s.Namespace, s.Name, err))
	}
	if v.Phase == v1alpha1.SubnetFailed {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, v.Reason, action, "%s", v.Message)
	}

	return nil
}

// hold sets which claim and which child pool a Subnet was created for, if they exist. They
// are read from the API server: the status then proves that they have existed at the same
// time as this Subnet, so that one that is missing later was deleted, and is not one that a
// backup is about to bring. The claim of a Subnet that Arbor created for it did exist.
func (r *Reconciler) hold(ctx context.Context, s *v1alpha1.Subnet) error {
	if s.Spec.ClaimRef != nil {
		var reader client.Reader = r.client
		if !ipamrules.IsOriginal(s) {
			reader = r.reader
		}
		c, err := kube.Find(ctx, reader, &v1alpha1.SubnetClaim{}, s.Namespace, s.Spec.ClaimRef.Name)
		if err != nil {
			return err
		}
		s.Status.ClaimUID = release.ClaimHolding(c, s)
	}
	if s.Spec.Backs == nil || s.Spec.Backs.UID == "" {
		return nil
	}
	child, err := kube.Find(ctx, r.reader, &v1alpha1.SubnetPool{}, s.Namespace, s.Spec.Backs.Name)
	if err != nil {
		return err
	}
	s.Status.PoolUID = release.PoolHolding(child, s)

	return nil
}

func block(s *v1alpha1.Subnet) (ipamrules.SubnetFacts, bool) {
	prefix, err := netip.ParsePrefix(s.Spec.CIDR)
	if err != nil {
		return ipamrules.SubnetFacts{}, false
	}

	return ipamrules.SubnetFacts{
		Name: s.Name, Prefix: prefix.Masked(), Phase: s.Status.Phase, Version: s.ResourceVersion,
		Cluster: s.Spec.ClusterID, Claimed: s.Spec.ClaimRef != nil && s.DeletionTimestamp == nil,
	}, true
}
