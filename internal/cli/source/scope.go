package source

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
)

// A Scope is where a command looks: in which namespaces of a cluster, or in
// which files.
type Scope struct {
	genericiooptions.IOStreams

	Flags         *genericclioptions.ConfigFlags
	Connect       Connector
	AllNamespaces bool
	Paths         []string
}

// NewScope returns a scope whose flags are not read yet.
func NewScope(streams genericiooptions.IOStreams, connect Connector) Scope {
	return Scope{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true), Connect: connect}
}

// AddFlags adds the flags that choose saved state or a cluster.
func (s *Scope) AddFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&s.Paths, "from", nil, "read a file or folder instead of a cluster, - for standard input; may be repeated")
	from := fs.Lookup("from")
	fs.AddFlag(&pflag.Flag{Name: "filename", Shorthand: "f", Usage: "the same as --from", Value: from.Value, DefValue: from.DefValue})
	s.AddClusterFlags(fs)
}

// AddClusterFlags is for commands that can do nothing with files.
func (s *Scope) AddClusterFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&s.AllNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	s.Flags.AddFlags(fs)
}

// Offline says whether files are read instead of a cluster.
func (s *Scope) Offline() bool { return len(s.Paths) > 0 }

// Namespace is the one to look in, empty for all.
func (s *Scope) Namespace() (string, error) {
	switch {
	case s.AllNamespaces:
		return "", nil
	case s.Offline():
		return *s.Flags.Namespace, nil
	}

	namespace, _, err := s.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}

	return namespace, nil
}

// Place names where was looked.
func (s *Scope) Place(namespace string) string {
	switch {
	case s.Offline() && namespace == "":
		return "the given files"
	case s.Offline():
		return namespace + " namespace of the given files"
	case namespace == "":
		return "any namespace"
	default:
		return namespace + " namespace"
	}
}

// ExplainEmpty prints that there are no pools, Subnets and claims where was looked. The error
// says that there is no such namespace.
func (s *Scope) ExplainEmpty(ctx context.Context, namespace string) error {
	if err := s.CheckNamespace(ctx, namespace); err != nil {
		return err
	}

	_, err := fmt.Fprintf(s.ErrOut, "No pools, Subnets or claims found in %s.\n", s.Place(namespace))

	return err
}

// CheckNamespace returns an error if a namespace does not exist in the cluster. An account
// that may not list namespaces cannot know.
func (s *Scope) CheckNamespace(ctx context.Context, namespace string) error {
	if s.Offline() || namespace == "" {
		return nil
	}

	list, err := s.Connect(s.Flags, s.ErrOut)
	if err != nil {
		return command.Blind("%w", err)
	}

	found, err := list(ctx, Query{Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Name: namespace})
	if err != nil || len(found) > 0 {
		return nil //nolint:nilerr // it may exist
	}

	return command.NotFound("namespace %q was not found in the cluster: name another with -n, or look in all of them with -A", namespace)
}

// CheckWatch returns an error for --watch of standard input, which can be read once.
func (s *Scope) CheckWatch(watch bool) error {
	if watch && slices.Contains(s.Paths, "-") {
		return command.Blind("standard input can be read once: leave out --watch")
	}

	return nil
}

// Advice says what to do about a name that was not found.
func (s *Scope) Advice() string {
	if s.AllNamespaces || s.Offline() {
		return "leave out the name to see what is there"
	}

	return "look in another namespace with -n, or in all of them with -A"
}

// Files reads the given files. bad is true if a part of them could not be
// read, which is then said.
func (s *Scope) Files(ctx context.Context) (files []manifest.File, bad bool, err error) {
	sources := manifest.Sources(s.Paths, s.In)

	var done atomic.Int64

	stop := render.Progress(s.ErrOut, func() string {
		return fmt.Sprintf("reading files, %d of %d", done.Load(), len(sources))
	})
	defer stop()

	files, err = manifest.Each(ctx, sources, func(f manifest.File) manifest.File {
		done.Add(1)

		return f
	})
	if err != nil {
		return nil, false, fmt.Errorf("interrupted: %w", err)
	}

	for _, f := range files {
		for _, e := range f.Errors {
			bad = true
			s.Complain(findings.FileError(f.Name, e))
		}
	}

	return files, bad, nil
}

// Complain says what is wrong with a part of the input.
func (s *Scope) Complain(l show.Located) {
	_, _ = fmt.Fprintln(s.ErrOut, render.FindingLine(l, render.StyleOf(s.ErrOut, os.Getenv)))
}

// Columns is the width to draw in.
func (s *Scope) Columns(wanted int) int {
	if wanted > 0 {
		return wanted
	}

	return render.WidthOf(s.Out, os.Getenv)
}
