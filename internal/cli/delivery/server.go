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
	"github.com/arbor-control/arbor/internal/rehearsal"
	"github.com/arbor-control/arbor/internal/show"
)

// A serverConnector finds a cluster by kubectl's rules.
type serverConnector func(flags *genericclioptions.ConfigFlags) (rehearsal.Server, error)

// ConnectServer returns the server of the cluster that the flags name.
func ConnectServer(flags *genericclioptions.ConfigFlags) (rehearsal.Server, error) {
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

func (s apiServer) Rehearse(ctx context.Context, w rehearsal.Write) (map[string]any, error) {
	o := &unstructured.Unstructured{Object: w.Object}
	o = o.DeepCopy()

	var err error

	switch {
	case w.Patch != nil:
		err = s.Patch(ctx, o, client.RawPatch(types.JSONPatchType, w.Patch), client.DryRunAll, client.FieldOwner(w.Manager))
	case w.Replace != "":
		o.SetResourceVersion(w.Replace)
		err = s.Update(ctx, o, client.DryRunAll, client.FieldOwner(w.Manager))
	default:
		err = s.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.DryRunAll, client.ForceOwnership, client.FieldOwner(w.Manager))
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
