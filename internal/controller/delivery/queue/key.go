package queue

import (
	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A Key is what the queue of resources holds. It is the same in every synthesis, so that two
// workers never have one object of a composition at the same time.
type Key struct {
	Composition types.NamespacedName
	Object      decide.Identity
}
