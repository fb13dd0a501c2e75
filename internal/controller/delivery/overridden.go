package delivery

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A judgement is what overrides make of a manifest in view of one version of the
// live object. As long as that is the current one, nobody has to look again.
type judgement struct {
	of      *decide.Resource
	with    *metav1.ObjectMeta
	version string

	item   *item
	states []decide.Override
}

// about is as much of the metadata of a composition as expressions can ask for.
func about(c *enov1.Composition) *metav1.ObjectMeta {
	known := &metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: maps.Clone(c.Labels), Annotations: maps.Clone(c.Annotations)}
	if c.DeletionStarted() { // what depends on the composition must not notice earlier
		known.DeletionTimestamp = c.DeletionTimestamp
	}

	return known
}

// inform tells a view what its composition is like now, and returns the items that
// may be others for it.
func (v *view) inform(c *enov1.Composition) []*item {
	v.mu.Lock()
	defer v.mu.Unlock()
	if maps.Equal(v.about.Labels, c.Labels) && maps.Equal(v.about.Annotations, c.Annotations) {
		return nil
	}
	v.about = about(c)

	return slices.DeleteFunc(slices.Clone(v.items), func(it *item) bool { return hidden(it) || !it.Overridden() && (!it.Watched() || it.state.Ready != nil) })
}

// asked is what expressions are told about the composition.
func (v *view) asked() *metav1.ObjectMeta {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.about
}

// orGone is an error about the settings of an item, nil if its object is to be deleted:
// they never keep it from that.
func (v *view) orGone(it *item, err error) error {
	if v.deleting || it.Tombstone {
		return nil
	}

	return err
}
