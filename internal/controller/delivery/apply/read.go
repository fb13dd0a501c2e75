package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/identity"
)

// read returns the live object, nil if there is none. If the version of the manifest is
// not served any more, the object is read in another version of its kind: it exists all
// the same. Only of a kind that no version serves there are no objects.
func (w *Worker) read(ctx context.Context, it *model.Item) (*unstructured.Unstructured, error) {
	if it.Namespace == "" {
		if namespaced, known := w.ScopeOf(it.GVK); known && namespaced {
			return nil, nil //nolint:nilnil // it could never be created
		}
	}
	live, err := w.get(ctx, it, it.GVK.Version)
	if !kinds.IsUnserved(err) {
		return live, err
	}
	version, err := w.servedVersion(it.GVK)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: cannot find out which versions of %s are served: %w", it.Identity, it.GVK.GroupKind(), err)
	case version == "":
		return nil, nil //nolint:nilnil // there are no objects of this kind
	}

	w.Mapper.Forget(it.GVK.GroupKind())

	return w.get(ctx, it, version)
}

// get reads the live object in a version, nil if it does not exist.
func (w *Worker) get(ctx context.Context, it *model.Item, version string) (*unstructured.Unstructured, error) {
	if !identity.CanExist(it.Object.GetName()) || !identity.CanExist(it.Object.GetNamespace()) {
		return nil, nil //nolint:nilnil // it could never be created
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(it.GVK.GroupKind().WithVersion(version))
	err := w.Remote.Get(ctx, client.ObjectKeyFromObject(it.Object), live)
	switch {
	case apierrors.IsNotFound(err) && !kinds.IsUnserved(err):
		return nil, nil //nolint:nilnil // it is absent, which is fine
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", it.Identity, err)
	case it.Unscoped && live.GetNamespace() != it.Namespace:
		return nil, fmt.Errorf("cannot use %s: its kind has turned out to be cluster-scoped; the composition is read again", it.Identity) // see outdated
	}

	return live, nil
}

// servedVersion is a version that the server serves a kind in, "" if there is none. It
// asks the server: what is cached about versions may be out of date.
func (w *Worker) servedVersion(gvk schema.GroupVersionKind) (string, error) {
	groups, err := w.Discovery.ServerGroups()
	if err != nil {
		return "", err
	}
	for _, group := range groups.Groups {
		if group.Name != gvk.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := w.Discovery.ServerResourcesForGroupVersion(version.GroupVersion)
			if client.IgnoreNotFound(err) != nil {
				return "", err
			}
			if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }) {
				return version.Version, nil
			}
		}
	}

	return "", nil
}
