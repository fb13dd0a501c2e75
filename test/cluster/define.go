package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/internal/kube"
)

// Define installs kinds of Arbor's, and waits until they can be used, which is some
// moments after their CRDs are established.
func Define(ctx context.Context, c client.Client, of schema.GroupVersion, kinds ...string) error {
	for _, kind := range kinds {
		crd, ok := crds.ByKind(of.Group, kind)
		if !ok {
			return fmt.Errorf("there is no CRD of %s", kind)
		}
		if err := kube.EnsureCRD(ctx, c, crd, true); err != nil {
			return err
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(of.WithKind(kind + "List"))
		if err := poll(kind+" is served", ctx.Done(), func() error { return c.List(ctx, list, client.Limit(1)) }); err != nil {
			return err
		}
	}

	return nil
}
