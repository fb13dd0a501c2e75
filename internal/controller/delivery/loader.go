package delivery

import (
	"k8s.io/apimachinery/pkg/labels"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
)

// A loader reads compositions and their slices, and repairs the slices.
type loader struct {
	*environment

	selector   labels.Selector
	filter     *decide.Filter
	pruneGuard pruning.Guard
	// defaultAccount is the name of the ServiceAccount of compositions that name none.
	defaultAccount string
}
