package manager

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A sharer keeps one copy of strings that thousands of objects repeat. Decoding an object allocates
// new copies of all its strings, and half of those of a Subnet are the same in all Subnets of its
// pool.
type sharer struct {
	mu         sync.Mutex
	words      map[string]string
	conditions map[metav1.Condition][]metav1.Condition
}

// shareConditions keeps one copy of the only condition of objects that were written in the
// same second.
func (s *sharer) shareConditions(conditions *[]metav1.Condition) {
	if len(*conditions) != 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.conditions[(*conditions)[0]]
	if !ok {
		if len(s.conditions) >= words || s.conditions == nil {
			s.conditions = map[metav1.Condition][]metav1.Condition{}
		}
		// No capacity to append: an append by one reader would change what other readers see.
		known = slices.Clip(*conditions)
		s.conditions[known[0]] = known
	}
	*conditions = known
}

const (
	// words is the maximum number of shared strings. There are as many as there are namespaces and
	// pools, including deleted ones. When there are more, the table is cleared.
	words = 10000
	// longest is the length of the longest string that is shared. Longer ones are rarely repeated.
	longest = 64
)

func (s *sharer) share(word *string) {
	if len(*word) > longest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.words[*word]
	if !ok {
		if len(s.words) >= words || s.words == nil {
			s.words = map[string]string{}
		}
		// A copy, or it could keep something larger that it is a part of.
		known = strings.Clone(*word)
		s.words[known] = known
	}
	*word = known
}

// slimSubnets transforms Subnets before a cache stores them. It changes nothing that readers use,
// except that it drops managed fields.
func slimSubnets() toolscache.TransformFunc {
	var all sharer
	strip := cache.TransformStripManagedFields()

	return func(o any) (any, error) {
		if s, ok := o.(*v1alpha1.Subnet); ok {
			all.subnet(s)
		}

		return strip(o)
	}
}

func (s *sharer) subnet(o *v1alpha1.Subnet) {
	for _, word := range []*string{&o.Kind, &o.APIVersion, &o.Namespace, &o.Spec.PoolRef, (*string)(&o.Status.Phase)} {
		s.share(word)
	}
	if o.Status.UID == o.UID {
		o.Status.UID = o.UID // one copy of the characters
	}
	if o.Spec.ClaimRef != nil {
		if o.Status.ClaimUID == o.Spec.ClaimRef.UID {
			o.Status.ClaimUID = o.Spec.ClaimRef.UID
		}
		s.share((*string)(&o.Spec.ClaimRef.PoolUID))
	}
	for i := range o.OwnerReferences {
		s.share(&o.OwnerReferences[i].Kind)
		s.share(&o.OwnerReferences[i].APIVersion)
	}
	// A cache may hand in an object that was here before. Its conditions are then those
	// of other objects too, which are being read.
	o.Status.Conditions = slices.Clone(o.Status.Conditions)
	for i := range o.Status.Conditions {
		c := &o.Status.Conditions[i]
		s.share(&c.Type)
		s.share((*string)(&c.Status))
		s.share(&c.Reason)
		// All Subnets without a problem have one message. The rest are few, and their messages are
		// about their own block.
		if o.Status.Phase == v1alpha1.SubnetAllocated {
			s.share(&c.Message)
		}
	}
	if o.Status.Phase == v1alpha1.SubnetAllocated {
		s.shareConditions(&o.Status.Conditions)
	}
}
