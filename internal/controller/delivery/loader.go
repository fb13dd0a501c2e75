package delivery

import "k8s.io/apimachinery/pkg/labels"

// A loader reads compositions and their slices, and repairs the slices.
type loader struct {
	*environment

	selector   labels.Selector
	filter     *Filter
	pruneGuard PruneGuard
	// defaultAccount is the name of the ServiceAccount of compositions that name none.
	defaultAccount string
}
