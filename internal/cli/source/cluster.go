package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/kube"
)

// ErrNotInstalled is returned by a lister for a resource that the cluster
// does not serve.
var ErrNotInstalled = errors.New("not installed in this cluster")

// A Query says which objects to list. An empty namespace means all.
type Query struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

// A Lister lists objects of a cluster.
type Lister func(ctx context.Context, q Query) ([]map[string]any, error)

// A Connector finds a cluster by kubectl's rules.
type Connector func(flags *genericclioptions.ConfigFlags, errOut io.Writer) (Lister, error)

// Connect returns a lister that pages through the API server's answer, and
// says so on errOut if that takes long.
func Connect(flags *genericclioptions.ConfigFlags, errOut io.Writer) (Lister, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster: %w", err)
	}

	// Pages are asked for one after the other, so the client's own brake
	// would only slow down large clusters.
	config.QPS = -1

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	apis, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the cluster: %w", err)
	}

	return func(ctx context.Context, q Query) ([]map[string]any, error) {
		objects, err := list(ctx, client, q, errOut)
		if apierrors.IsForbidden(err) && !serves(apis, q.Resource.GroupVersion()) {
			// Rights are asked for before it is looked whether there is
			// anything to have a right to.
			return nil, ErrNotInstalled
		}

		return objects, err
	}, nil
}

// serves is false only if a cluster says that it does not have an API.
func serves(apis discovery.ServerResourcesInterface, gv schema.GroupVersion) bool {
	_, err := apis.ServerResourcesForGroupVersion(gv.String())

	return !apierrors.IsNotFound(err)
}

func list(ctx context.Context, client dynamic.Interface, q Query, errOut io.Writer) ([]map[string]any, error) {
	var seen atomic.Int64

	stop := render.Progress(errOut, func() string {
		return fmt.Sprintf("listing %s, %d so far", q.Resource.Resource, seen.Load())
	})
	defer stop()

	opts := metav1.ListOptions{}
	if q.Name != "" {
		opts.FieldSelector = "metadata.name=" + q.Name
	}

	// The pager asks for 500 at a time, and for all at once if the pages
	// expire before it has them.
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		page, err := client.Resource(q.Resource).Namespace(q.Namespace).List(ctx, opts)
		if err != nil {
			return nil, err
		}

		seen.Add(int64(len(page.Items)))

		return page, nil
	})

	all, _, err := pages.List(ctx, opts)
	if apierrors.IsNotFound(err) {
		return nil, ErrNotInstalled
	}

	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", q.Resource.GroupResource(), ShortError(err))
	}

	return contents(all)
}

// ShortError names the server instead of the whole address of a request that got
// no answer.
func ShortError(err error) error { return kube.ShortError(err) }

func contents(list runtime.Object) ([]map[string]any, error) {
	var out []map[string]any

	err := meta.EachListItem(list, func(o runtime.Object) error {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("cannot use a %T", o)
		}

		out = append(out, u.Object)

		return nil
	})

	return out, err
}
