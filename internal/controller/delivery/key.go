package delivery

import (
	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A key is what the queue of resources holds. It is the same in every synthesis,
// so that nobody works on one object of a composition twice at a time.
type key struct {
	composition types.NamespacedName
	object      decide.Identity
}
