package fields

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// A search says which objects of a cluster are asked for, in kubectl's words:
// deploy/web, deploy web, or deploy and labels. An empty namespace means all.
type search struct {
	args      []string
	selector  string
	namespace string
}

// A finder finds objects of any kind, with their managedFields. Its error is an
// [ExitError].
type finder func(ctx context.Context, flags *genericclioptions.ConfigFlags, errOut io.Writer, s search) ([]map[string]any, error)

// Find asks the cluster for objects as kubectl get does.
func Find(ctx context.Context, flags *genericclioptions.ConfigFlags, errOut io.Writer, s search) ([]map[string]any, error) {
	// Discovery logs what it also returns, once for every try.
	klog.SetLogger(logr.Discard())

	what := strings.Join(s.args, " ")
	stop := render.Progress(errOut, func() string { return "asking the cluster for " + render.Clean(what) })

	defer stop()

	type answer struct {
		infos []*resource.Info
		err   error
	}

	// The builder knows no context: who interrupts does not wait for it.
	answers := make(chan answer, 1)

	go func() {
		infos, err := s.builder(flags).Do().Infos()
		answers <- answer{infos, err}
	}()

	select {
	case <-ctx.Done():
		return nil, command.Blind("interrupted: %w", ctx.Err())
	case got := <-answers:
		if got.err != nil {
			return nil, notFound(what, got.err)
		}

		return objectsOf(got.infos)
	}
}

func (s search) builder(flags *genericclioptions.ConfigFlags) *resource.Builder {
	const page = 500

	return resource.NewBuilder(flags).Unstructured().
		NamespaceParam(s.namespace).DefaultNamespace().AllNamespaces(s.namespace == "").
		LabelSelectorParam(s.selector).RequestChunksOf(page).
		ResourceTypeOrNameArgs(true, s.args...).
		ContinueOnError().Latest().Flatten()
}

// notFound tells an object that is not there from a cluster that cannot be
// asked.
func notFound(what string, err error) error {
	if utilerrors.FilterOut(err, apierrors.IsNotFound) == nil {
		return command.NotFound("cannot find %s: %w", what, err)
	}

	return command.Blind("cannot find %s: %w", what, source.ShortError(err))
}

func objectsOf(infos []*resource.Info) ([]map[string]any, error) {
	out := make([]map[string]any, 0, len(infos))

	for _, info := range infos {
		u, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, command.Blind("cannot use a %T", info.Object)
		}

		out = append(out, u.Object)
	}

	return out, nil
}

var errNoEntries = errors.New("cannot tell who owns what: there is no metadata.managedFields (save objects with kubectl get --show-managed-fields -o yaml)")

// fromFiles returns the objects of the given files that are asked for. In a
// file, an object without entries is one that was saved without them.
func (o *ownersOptions) fromFiles(ctx context.Context, namespace string) (all []*owners.Object, end, err error) {
	wanted, err := o.filter(namespace)
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	files, bad, err := o.Files(ctx)
	if err != nil {
		return nil, nil, command.Blind("%w", err)
	}

	for _, f := range files {
		for _, d := range f.Documents {
			if wanted(d.Object) {
				thing, ok := o.fromDocument(f, d)
				all, bad = append(all, thing...), bad || !ok
			}
		}
	}

	switch {
	case bad:
		return all, &command.ExitError{Code: command.ExitBlind}, nil
	case len(all) == 0:
		return nil, nil, o.nothing(namespace)
	default:
		return all, nil, nil
	}
}

// fromDocument returns an object if anything of it can be used. ok is false if
// something cannot, which is then said.
func (o *ownersOptions) fromDocument(f manifest.File, d *manifest.Document) (all []*owners.Object, ok bool) {
	thing, err := owners.New(d.Object)
	if len(thing.Entries) > 0 {
		all = append(all, thing)
	} else if err == nil {
		err = errNoEntries
	}

	if err != nil {
		o.Complain(entriesError(f, d, err))
	}

	return all, err == nil
}

func entriesError(f manifest.File, d *manifest.Document, err error) show.Located {
	return show.Located{File: f.Name, Line: d.Line("metadata.managedFields"), Finding: show.Finding{
		Severity: show.SeverityError, Object: identity.RefOf(d.Object), Reason: verdict.ReasonUndecodable, Message: err.Error(),
	}}
}

// filter is what the arguments and the labels ask for, among objects of files.
func (o *ownersOptions) filter(namespace string) (func(obj map[string]any) bool, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("cannot read selector %q: %w", o.selector, err)
	}

	names, err := parseNames(o.args)
	if err != nil {
		return nil, err
	}

	return func(obj map[string]any) bool {
		u := unstructured.Unstructured{Object: obj}
		if at := u.GetNamespace(); namespace != "" && at != "" && at != namespace {
			return false
		}

		return selector.Matches(labels.Set(u.GetLabels())) && isNamed(identity.RefOf(obj), names)
	}, nil
}

// A kindName is KIND/NAME, or a KIND of any name.
type kindName struct{ kind, name string }

func isNamed(ref identity.Ref, names []kindName) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(n kindName) bool {
		return (n.name == "" || n.name == ref.Name) && isKind(ref, n.kind)
	})
}

// parseNames reads arguments as kubectl does: KIND/NAME…, or KIND [NAME…].
func parseNames(args []string) ([]kindName, error) {
	var out []kindName

	for i, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")

		switch {
		case ok && (kind == "" || name == ""):
			return nil, fmt.Errorf("cannot read %q: write KIND/NAME, like deploy/web", arg)
		case ok:
			out = append(out, kindName{kind, name})
		case i > 0 && !strings.Contains(args[0], "/"):
			out = append(out, kindName{args[0], arg})
		case i > 0:
			return nil, fmt.Errorf("cannot read %q: write KIND/NAME, like deploy/web", arg)
		case len(args) == 1:
			out = append(out, kindName{kind: arg})
		}
	}

	return out, nil
}

// shortNames are the ones that people use most. Files do not tell what a
// cluster calls its kinds.
var shortNames = map[string]string{
	"cj": "cronjob", "cm": "configmap", "crd": "customresourcedefinition", "deploy": "deployment", "ds": "daemonset",
	"hpa": "horizontalpodautoscaler", "ing": "ingress", "ns": "namespace", "pg": "podgroup", "po": "pod",
	"rs": "replicaset", "sa": "serviceaccount", "sts": "statefulset", "svc": "service",
}

// isKind says whether an object is of a kind that is written as its name, its
// plural or its short name, with or without a group.
func isKind(ref identity.Ref, text string) bool {
	text, group, _ := strings.Cut(strings.ToLower(text), ".")
	if long, ok := shortNames[text]; ok {
		text = long
	}

	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	plural, singular := meta.UnsafeGuessKindToResource(gvk)

	return (text == plural.Resource || text == singular.Resource) && (group == "" || strings.HasPrefix(gvk.Group, group))
}
