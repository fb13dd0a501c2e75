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

// A sharer keeps one copy of words that thousands of objects repeat. Whoever
// decodes an object makes new copies of all its words: of a Subnet, half of
// them say what the others of its pool say too.
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
		// No room to append: a reader that did would change what others see.
		known = slices.Clip(*conditions)
		s.conditions[known[0]] = known
	}
	*conditions = known
}

const (
	// words that are shared at most. There are as many as there are namespaces
	// and pools, those that are long gone included; when there are more, it
	// begins anew.
	words = 10000
	// longest that is shared: what is longer is a story of its own.
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

// slimSubnets is what is done to Subnets before a cache keeps them: nothing that
// anybody could read from them changes, except for the managed fields.
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
		// All that are good have one message. The others are few, and say
		// something about their own block.
		if o.Status.Phase == v1alpha1.SubnetAllocated {
			s.share(&c.Message)
		}
	}
	if o.Status.Phase == v1alpha1.SubnetAllocated {
		s.shareConditions(&o.Status.Conditions)
	}
}
