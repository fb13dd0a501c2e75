package cli

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/manifest"
)

// A scope is where a command looks: in which namespaces of a cluster, or in
// which files.
type scope struct {
	genericiooptions.IOStreams

	flags         *genericclioptions.ConfigFlags
	connect       connector
	allNamespaces bool
	paths         []string
}

func newScope(streams genericiooptions.IOStreams, connect connector) scope {
	return scope{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), connect: connect}
}

func (s *scope) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&s.paths, "filename", "f", nil, "read a file or folder instead of a cluster, - for standard input; may be repeated")
	s.addClusterFlags(fs)
}

// addClusterFlags is for commands that can do nothing with files.
func (s *scope) addClusterFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	s.flags.AddFlags(fs)
}

// offline says whether files are read instead of a cluster.
func (s *scope) offline() bool { return len(s.paths) > 0 }

// namespace is the one to look in, empty for all.
func (s *scope) namespace() (string, error) {
	switch {
	case s.allNamespaces:
		return "", nil
	case s.offline():
		return *s.flags.Namespace, nil
	}

	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}

	return namespace, nil
}

// place names where was looked.
func (s *scope) place(namespace string) string {
	switch {
	case s.offline() && namespace == "":
		return "the given files"
	case s.offline():
		return namespace + " namespace of the given files"
	case namespace == "":
		return "any namespace"
	default:
		return namespace + " namespace"
	}
}

// explainEmpty prints that there are no pools, Subnets and claims where was looked. The error
// says that there is no such namespace.
func (s *scope) explainEmpty(ctx context.Context, namespace string) error {
	if err := s.checkNamespace(ctx, namespace); err != nil {
		return err
	}

	_, err := fmt.Fprintf(s.ErrOut, "No pools, Subnets or claims found in %s.\n", s.place(namespace))

	return err
}

// checkNamespace returns an error if a namespace does not exist in the cluster. An account
// that may not list namespaces cannot know.
func (s *scope) checkNamespace(ctx context.Context, namespace string) error {
	if s.offline() || namespace == "" {
		return nil
	}

	list, err := s.connect(s.flags, s.ErrOut)
	if err != nil {
		return blind("%w", err)
	}

	found, err := list(ctx, query{resource: corev1.SchemeGroupVersion.WithResource("namespaces"), name: namespace})
	if err != nil || len(found) > 0 {
		return nil //nolint:nilerr // it may exist
	}

	return &ExitError{Code: ExitFound, Err: fmt.Errorf("namespace %q was not found in the cluster: name another with -n, or look in all of them with -A", namespace)}
}

// advice says what to do about a name that was not found.
func (s *scope) advice() string {
	if s.allNamespaces || s.offline() {
		return "leave out the name to see what is there"
	}

	return "look in another namespace with -n, or in all of them with -A"
}

// files reads the given files. bad is true if a part of them could not be
// read, which is then said.
func (s *scope) files(ctx context.Context) (files []manifest.File, bad bool, err error) {
	sources := manifest.Sources(s.paths, s.In)

	var done atomic.Int64

	stop := progress(s.ErrOut, func() string {
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
			s.complain(fileError(f.Name, e))
		}
	}

	return files, bad, nil
}

// complain says what is wrong with a part of the input.
func (s *scope) complain(l Located) {
	_, _ = fmt.Fprintln(s.ErrOut, l.line(styleOf(s.ErrOut, os.Getenv)))
}
