package ipamcache

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// Wrote records the version of a pool that this process has just written. The event
// of that write wakes no controller.
func (f *Feed) Wrote(pool types.NamespacedName, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ours[pool] = version
}

// Forget removes the version that Wrote recorded. The controller that writes pools
// calls it for a pool that is gone, because its last write may be recorded after the
// event of the deletion.
func (f *Feed) Forget(pool types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.ours, pool)
}

// Behind reports whether a pool, as a cache has it, is older than what this process
// has written. The event of that write wakes no controller, so a controller that acts
// on such a pool would not learn of its mistake.
func (f *Feed) Behind(p *v1alpha1.SubnetPool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrote, ok := f.ours[client.ObjectKeyFromObject(p)]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(p.ResourceVersion, wrote)

	return err != nil || order < 0
}

// isEcho reports whether an update of a pool is nothing but a write of its status by
// this process. After a relist, an update to our version can hold changes of others.
func (f *Feed) isEcho(before, now *v1alpha1.SubnetPool) bool {
	f.mu.Lock()
	ours := f.ours[client.ObjectKeyFromObject(now)]
	f.mu.Unlock()

	return ours == now.ResourceVersion && before.Open() == now.Open() && before.Status.Lost == now.Status.Lost &&
		equality.Semantic.DeepEqual(before.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(metadata(before), metadata(now))
}

// metadata returns the metadata that a write of the status does not change.
func metadata(p *v1alpha1.SubnetPool) metav1.ObjectMeta {
	m := p.ObjectMeta
	m.ResourceVersion, m.ManagedFields = "", nil

	return m
}
