package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show/findings"
)

// Scheduling is what a scheduler can be asked. Whoever makes the commands fills
// it in: a scheduler is all of Kubernetes, and these commands are not.
type Scheduling struct {
	// Open reads a cluster. file is the scheduler's configuration, or empty.
	Open func(ctx context.Context, cluster *rest.Config, minimums, file string) (Oracle, error)
	// Offline is a cluster that consists of objects.
	Offline func(objects []unstructured.Unstructured) (*rest.Config, error)
	// Kinds are what scheduling looks at.
	Kinds func() []schema.GroupVersionResource
	// Knows says whether a kind is one of these.
	Knows func(schema.GroupVersionKind) bool
}

// An Oracle knows a cluster, and what its scheduler would do. It changes nothing.
type Oracle interface {
	Groups() []types.NamespacedName
	// Group returns a PodGroup, nil if there is none, and the pods that name it.
	Group(key types.NamespacedName) (*v2alpha2.PodGroup, []*corev1.Pod)
	// Priority is that of a class, or what pods have that name none.
	Priority(class string) (int32, bool)
	Fit(ctx context.Context, pg *v2alpha2.PodGroup, pods []*corev1.Pod) (*scheduling.Answer, error)
}

// askOptions are what the commands that ask a scheduler have in common.
type askOptions struct {
	source.Scope

	scheduling Scheduling
	output     output.Flags
	dump       string
	minimums   string
	config     string
}

func newAskOptions(streams genericiooptions.IOStreams, s Scheduling) askOptions {
	return askOptions{Scope: source.NewScope(streams, nil), scheduling: s}
}

func (o *askOptions) addAskFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.output.Add(cmd, output.Table, output.Wide, output.Name)
	fs.StringVar(&o.dump, "from", "", "ask about the cluster that 'arbor groups dump' wrote into this file, - for standard input")
	fs.StringVar(&o.minimums, "minimums", "arbor", `how the scheduler reads minMember: "arbor", or "kai" for leaves only`)
	fs.StringVar(&o.config, "scheduler-config", "", "the scheduler's own configuration, a KubeSchedulerConfiguration; pods must ask for one of its profiles")
}

// namespace is the one to look in, empty for all. A dump has no current one.
func (o *askOptions) namespace() (string, error) {
	switch {
	case o.AllNamespaces:
		return "", nil
	case *o.Flags.Namespace != "":
		return *o.Flags.Namespace, nil
	case o.dump != "":
		return metav1.NamespaceDefault, nil
	}
	namespace, _, err := o.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}

	return namespace, nil
}

// open reads the cluster or the dump. It ends with ctx.
func (o *askOptions) open(ctx context.Context) (Oracle, error) {
	// What informers log is also returned.
	klog.SetLogger(logr.Discard())

	config, err := o.cluster(ctx)
	if err != nil {
		return nil, err
	}
	stop := render.Progress(o.ErrOut, func() string { return "reading the cluster" })
	defer stop()

	return o.scheduling.Open(ctx, config, o.minimums, o.config)
}

func (o *askOptions) cluster(ctx context.Context) (*rest.Config, error) {
	if o.dump == "" {
		config, err := o.Flags.ToRESTConfig()
		if err != nil {
			return nil, fmt.Errorf("cannot find a cluster: %w; with --from, none is needed", err)
		}

		return config, nil
	}
	objects, others, err := o.readDump(ctx)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		o.notef("scheduling does not look at all that is in %s: left out are %s", o.dump, counted(others))
	}
	config, err := o.scheduling.Offline(objects)
	if err != nil {
		return nil, fmt.Errorf("the dump %s: %w", o.dump, err)
	}

	return config, nil
}

// readDump returns the objects of the dump, and the kinds of those that have
// nothing to do with scheduling.
func (o *askOptions) readDump(ctx context.Context) (objects []unstructured.Unstructured, others []string, err error) {
	stop := render.Progress(o.ErrOut, func() string { return "reading " + o.dump })
	defer stop()

	files, err := manifest.Each(ctx, manifest.Sources([]string{o.dump}, o.In), func(f manifest.File) manifest.File { return f })
	if err != nil {
		return nil, nil, fmt.Errorf("interrupted: %w", err)
	}
	for _, f := range files {
		if len(f.Errors) > 0 {
			return nil, nil, fmt.Errorf("the dump cannot be used: %s", render.FindingLine(findings.FileError(f.Name, f.Errors[0]), render.Style{}))
		}
		for _, d := range f.Documents {
			object := unstructured.Unstructured{Object: d.Object}
			kind := object.GroupVersionKind()
			if _, cut := d.Object["items"]; kind.Kind == "" && cut {
				return nil, nil, fmt.Errorf("the dump %s is cut off: it does not end with kind: List; write it again with 'arbor groups dump'", f.Name)
			}
			if !o.scheduling.Knows(kind) {
				others = append(others, kind.Kind)

				continue
			}
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, nil, fmt.Errorf("the dump %s holds nothing that scheduling looks at: write one with 'arbor groups dump'", o.dump)
	}

	return objects, others, nil
}

// counted counts words: 2 ConfigMap, 1 Secret.
func counted(words []string) string {
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	texts := make([]string, 0, len(counts))
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		if w == "" {
			texts = append(texts, fmt.Sprintf("%d without a kind", counts[w]))
		} else {
			texts = append(texts, fmt.Sprintf("%d %s", counts[w], w))
		}
	}

	return strings.Join(texts, ", ")
}

// notef says something that changes nothing.
func (o *askOptions) notef(format string, args ...any) {
	_, _ = fmt.Fprintln(o.ErrOut, "Note: "+render.Clean(fmt.Sprintf(format, args...)))
}

// check is about flags.
func (o *askOptions) check() error {
	if err := o.output.Check(); err != nil {
		return err
	}
	if o.output.Watch && (o.dump == "-" || slices.Contains(o.Paths, "-")) {
		return command.Blind("standard input can be read once: leave out --watch")
	}
	if o.dump == "-" && slices.Contains(o.Paths, "-") {
		return command.Blind("%w", errors.New("standard input can be read once: give either --from or -f a file"))
	}

	return nil
}
