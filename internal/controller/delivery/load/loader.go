package load

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/arbor-control/arbor/internal/controller/delivery/env"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
)

// A Loader reads compositions and their slices, and repairs the slices.
type Loader struct {
	*env.Environment

	Selector   labels.Selector
	Filter     *decide.Filter
	PruneGuard pruning.Guard
	// DefaultAccount is the name of the ServiceAccount of compositions that name none.
	DefaultAccount string
}
