package delivery

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// A server answers questions about single objects of any kind.
type server interface {
	// Get returns an object.
	Get(ctx context.Context, ref identity.Ref) (map[string]any, error)
	// Find returns an object, in another version if its own is not served any more.
	Find(ctx context.Context, ref identity.Ref) (map[string]any, error)
	// Rehearse says what a write of the applier would make of an object, and
	// writes nothing.
	Rehearse(ctx context.Context, w rehearsal) (map[string]any, error)
	// Scope reports whether a kind is namespaced, and whether the server knows it.
	Scope(group, kind string) (namespaced, known bool)
	// Annotate merges a patch into an object, as Arbor.
	Annotate(ctx context.Context, ref identity.Ref, patch []byte, dryRun bool) error
}

// A rehearsal is a write that is only tried.
type rehearsal struct {
	// object is what is applied.
	object map[string]any
	// replace has it written as a whole instead, over what has that version.
	replace string
	// patch is a JSON patch of the object instead.
	patch []byte
	// manager is the field manager.
	manager string
}

// A serverConnector finds a cluster by kubectl's rules.
type serverConnector func(flags *genericclioptions.ConfigFlags) (server, error)

// ConnectServer returns the server of the cluster that the flags name.
func ConnectServer(flags *genericclioptions.ConfigFlags) (server, error) {
	// Discovery logs what it also returns, once for every try.
	klog.SetLogger(logr.Discard())

	c, err := source.ConnectClient(flags)
	if err != nil {
		return nil, err
	}

	return apiServer{c}, nil
}

// An apiServer is a real one.
type apiServer struct{ client.Client }

func (s apiServer) Get(ctx context.Context, ref identity.Ref) (map[string]any, error) {
	o := show.Reference(ref)

	err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), o)

	return o.Object, source.ShortError(err)
}

func (s apiServer) Find(ctx context.Context, ref identity.Ref) (map[string]any, error) {
	live, err := s.Get(ctx, ref)
	if !meta.IsNoMatchError(err) {
		return live, err
	}

	mapping, unknown := s.RESTMapper().RESTMapping(show.Reference(ref).GroupVersionKind().GroupKind())
	if unknown != nil {
		return nil, err // no version is served
	}

	ref.APIVersion = mapping.GroupVersionKind.GroupVersion().String()

	return s.Get(ctx, ref)
}

func (s apiServer) Rehearse(ctx context.Context, w rehearsal) (map[string]any, error) {
	o := &unstructured.Unstructured{Object: w.object}
	o = o.DeepCopy()

	var err error

	switch {
	case w.patch != nil:
		err = s.Patch(ctx, o, client.RawPatch(types.JSONPatchType, w.patch), client.DryRunAll, client.FieldOwner(w.manager))
	case w.replace != "":
		o.SetResourceVersion(w.replace)
		err = s.Update(ctx, o, client.DryRunAll, client.FieldOwner(w.manager))
	default:
		err = s.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.DryRunAll, client.ForceOwnership, client.FieldOwner(w.manager))
	}

	return o.Object, source.ShortError(err)
}

func (s apiServer) Scope(group, kind string) (namespaced, known bool) {
	mapping, err := s.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return false, false
	}

	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

func (s apiServer) Annotate(ctx context.Context, ref identity.Ref, patch []byte, dryRun bool) error {
	opts := []client.PatchOption{client.FieldOwner(names.Arbor)}
	if dryRun {
		opts = append(opts, &client.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	}

	return source.ShortError(s.Patch(ctx, show.Reference(ref), client.RawPatch(types.MergePatchType, patch), opts...))
}
