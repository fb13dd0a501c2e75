package ipamplan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// nearlyFull is the share from which on somebody should think of more space.
const nearlyFull = 0.9

// Unusable is what the controller says of a CIDR that is none.
func (s *Pool) Unusable() string {
	return meta.FindStatusCondition(s.Count().Conditions, v1alpha1.ConditionReady).Message
}

// Count is the status that the pool should have, apart from the times in it.
func (s *Pool) Count() v1alpha1.SubnetPoolStatus {
	bare := &v1alpha1.SubnetPool{Spec: s.Spec, Status: s.Status}
	bare.UID, bare.Generation = s.UID, s.Generation
	listed := make(map[string]string, len(s.First))

	for _, b := range s.First {
		listed[b.Prefix.String()] = b.Owner
	}

	return ipamrules.PoolStatus(bare, ipamrules.PoolFigures{All: s.All, Own: s.Own, Delegated: s.Delegated, Listed: listed}, metav1.Time{})
}

// Live is how many Subnets there are, apart from those that stand for a child
// pool.
func (s *Pool) Live() int { return len(s.subnets) - s.twins }

// DefaultLength is the size of blocks for claims that name none.
func (s *Pool) DefaultLength() int { return ipamrules.DefaultBlockLength(s.SubnetPool, s.All.Prefix()) }

// Exhausted is true when the next claim that names no size would wait.
func (s *Pool) Exhausted() bool { return s.All.FreeCount(s.DefaultLength()).IsZero() }

// Full reports whether more space is needed soon.
func (s *Pool) Full() bool { return s.All.Utilization() >= nearlyFull }

// Strategy is the one that blocks are chosen by.
func (s *Pool) Strategy() v1alpha1.Strategy {
	if s.Spec.Strategy == "" {
		return v1alpha1.StrategyLinear
	}

	return s.Spec.Strategy
}

// disagrees says whether the status tells something else than the objects.
// Where blocks do not fit, it depends on who came first which of them is
// counted; and a manifest that a person wrote has no status.
func (s *Pool) disagrees(offline bool) bool {
	if len(s.Misfits) > 0 || offline && s.Status.ObservedGeneration == 0 && len(s.Status.Conditions) == 0 {
		return false
	}

	had, want := s.Status, s.Count()
	had.Conditions, want.Conditions = nil, nil

	return !equality.Semantic.DeepEqual(had, want)
}
