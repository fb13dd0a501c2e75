package model

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// An Evaluation is what overrides make of a manifest in view of one version of the live object. As
// long as that is the current one, nothing needs to be evaluated again.
type Evaluation struct {
	Original *decide.Resource
	Metadata *metav1.ObjectMeta
	Version  string

	Item   *Item
	States []decide.Override
}

// ExpressionMetadata is as much of the metadata of a composition as expressions can ask for.
func ExpressionMetadata(c *enov1.Composition) *metav1.ObjectMeta {
	known := &metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: maps.Clone(c.Labels), Annotations: maps.Clone(c.Annotations)}
	if c.DeletionStarted() { // dependents of the composition must not notice earlier
		known.DeletionTimestamp = c.DeletionTimestamp
	}

	return known
}

// UpdateMetadata updates the metadata of the composition, and returns the items whose overrides may
// depend on them.
func (v *Composition) UpdateMetadata(c *enov1.Composition) []*Item {
	v.mu.Lock()
	defer v.mu.Unlock()
	if maps.Equal(v.metadata.Labels, c.Labels) && maps.Equal(v.metadata.Annotations, c.Annotations) {
		return nil
	}
	v.metadata = ExpressionMetadata(c)

	return slices.DeleteFunc(slices.Clone(v.Items), func(it *Item) bool {
		return IsInvalid(it) || !it.Overridden() && (!it.Watched() || it.State.Ready != nil)
	})
}

// Metadata is what expressions can read of the composition.
func (v *Composition) Metadata() *metav1.ObjectMeta {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.metadata
}

// OrGone is an error about the settings of an item, nil if its object must be deleted: they never
// keep it from that.
func (v *Composition) OrGone(it *Item, err error) error {
	if v.Deleting || it.Tombstone {
		return nil
	}

	return err
}
