package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	synthesisrules "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/krm"
	"github.com/arbor-control/arbor/internal/rehearsal"
)

// rehearsalUUID is what a program is told that is run on this machine.
const rehearsalUUID = "00000000-0000-0000-0000-000000000000"

// A renderer runs the program of a composition on this machine.
type renderer struct {
	// synthesizer is a file, and command is run instead of the one in it.
	synthesizer, command string
	timeout              time.Duration
}

func (r *renderer) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.synthesizer, "synthesizer", "", "file with the Synthesizer: its command is run on this machine, and its refs are the inputs")
	fs.StringVar(&r.command, "exec", "", "shell command to run on this machine instead of the command of the Synthesizer")
	fs.DurationVar(&r.timeout, "timeout", 30*time.Second, "how long the program may run")
}

// check reports flags that do not fit together.
func (r *renderer) check(paths []string) error {
	switch {
	case len(paths) == 0:
		return command.Blind("cannot tell what to render: use -f FILE with a Composition")
	case r.synthesizer == "" && r.command == "":
		return command.Blind("cannot tell which program to run: use --synthesizer FILE or --exec COMMAND; a command that is only in the cluster is never run")
	}

	return nil
}

// A rendering is what a program made of a composition.
type rendering struct {
	composition *enov1.Composition
	output      krm.Output
	// log is the end of what the program wrote to standard error.
	log string
}

// errProgram is wrapped by errors of the program itself.
var errProgram = errors.New("the program failed")

// render reads a composition and its inputs, and runs its program.
func (s *deliveryScope) render(ctx context.Context, r *renderer, servers serverConnector) (*rendering, error) {
	objects, err := s.readObjects(ctx, s.Paths)
	if err != nil {
		return nil, err
	}

	c := &enov1.Composition{}
	if err := decodeOnly(objects, enov1.CompositionKind, "", c); err != nil {
		return nil, err
	}

	if c.Namespace == "" {
		namespace, _, err := s.Flags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
		}

		c.Namespace = namespace
	}

	in := &inputs{deliveryScope: s, servers: servers, objects: objects}

	p, err := in.program(ctx, r, c)
	if err != nil {
		return nil, err
	}

	given, err := in.encode(ctx, c, p)
	if err != nil {
		return nil, err
	}

	return r.run(ctx, c, p, given)
}

func (r *renderer) run(ctx context.Context, c *enov1.Composition, p *enov1.Synthesizer, given []byte) (*rendering, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()

	result, err := (&executor.Process{}).Execute(ctx, executor.Job{
		Command: p.Spec.Command, Image: p.Spec.Image, Input: given, Env: c.Spec.SynthesisEnv,
		CompositionNamespace: c.Namespace, CompositionName: c.Name, SynthesizerName: p.Name, SynthesisUUID: rehearsalUUID,
	})
	done := &rendering{composition: c, log: result.Log}

	if err == nil {
		done.output, err = krm.Decode(result.Output)
	}

	if err == nil && (&enov1.Synthesis{Results: done.output.Results}).Failed() {
		err = errors.New("it reported an error")
	}

	if err != nil {
		return done, fmt.Errorf("%w: %w", errProgram, err)
	}

	return done, nil
}

// readObjects reads the objects of files.
func (s *deliveryScope) readObjects(ctx context.Context, paths []string) ([]map[string]any, error) {
	from := *s
	from.Paths = paths

	files, bad, err := from.Files(ctx)
	if err != nil {
		return nil, err
	}

	if bad {
		return nil, errors.New("not all files could be read")
	}

	var all []map[string]any

	for _, f := range files {
		for _, d := range f.Documents {
			all = append(all, d.Object)
		}
	}

	return all, nil
}

// decodeOnly decodes the object of a kind of the delivery API, of which there must be one.
// Only those of a name count, if there is one.
func decodeOnly(objects []map[string]any, kind, name string, into any) error {
	var found []map[string]any

	for _, o := range objects {
		ref := identity.RefOf(o)
		if gv, _ := schema.ParseGroupVersion(ref.APIVersion); gv.Group == enov1.GroupVersion.Group && ref.Kind == kind && (name == "" || ref.Name == name) {
			found = append(found, o)
		}
	}

	if len(found) != 1 {
		return fmt.Errorf("cannot tell which %s is meant: there are %d in the files", kind, len(found))
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0], into); err != nil {
		return fmt.Errorf("cannot decode %s: %w", identity.RefOf(found[0]), err)
	}

	return nil
}

// inputs finds what a program reads: in files, or else in the cluster.
type inputs struct {
	*deliveryScope

	servers serverConnector
	objects []map[string]any
	cluster rehearsal.Server
}

// program is the Synthesizer whose command is run. From the cluster, only refs are taken.
func (i *inputs) program(ctx context.Context, r *renderer, c *enov1.Composition) (*enov1.Synthesizer, error) {
	p := &enov1.Synthesizer{}
	name := c.Spec.Synthesizer.Name

	switch {
	case r.synthesizer != "":
		objects, err := i.readObjects(ctx, []string{r.synthesizer})
		if err != nil {
			return nil, err
		}

		if err := decodeOnly(objects, enov1.SynthesizerKind, "", p); err != nil {
			return nil, err
		}
	case decodeOnly(i.objects, enov1.SynthesizerKind, name, p) == nil:
	case len(c.Spec.Bindings) > 0:
		o, err := i.fromCluster(ctx, identity.Ref{APIVersion: enov1.GroupVersion.String(), Kind: enov1.SynthesizerKind, Name: name})
		if err != nil {
			return nil, fmt.Errorf("cannot tell of which kinds the inputs are: cannot read Synthesizer %s: %w; add it to the files", name, err)
		}

		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, p); err != nil {
			return nil, fmt.Errorf("cannot decode Synthesizer %s: %w", name, err)
		}
	}

	if r.command != "" {
		p.Spec.Command = []string{"sh", "-c", r.command}
	} else if len(p.Spec.Command) == 0 {
		p.Spec.Command = []string{"synthesize"}
	}

	return p, nil
}

// encode returns what the program reads from standard input.
func (i *inputs) encode(ctx context.Context, c *enov1.Composition, p *enov1.Synthesizer) ([]byte, error) {
	var (
		given    []krm.Input
		optional []string
	)

	for _, b := range synthesisrules.Bind(c, p, tenancy.Rules{}) {
		if b.Optional {
			optional = append(optional, b.Key)
		}

		o, err := i.find(ctx, b)

		switch {
		case err == nil:
			given = append(given, krm.Input{Key: b.Key, Object: o})
		case b.Optional && (apierrors.IsNotFound(err) || b.Name == ""):
		default:
			return nil, fmt.Errorf("input %q: %w", b.Key, err)
		}
	}

	return krm.Encode(given, optional)
}

// find returns the object that an input is bound to.
func (i *inputs) find(ctx context.Context, b synthesisrules.Bound) (map[string]any, error) {
	if b.Name == "" {
		return nil, errors.New("no object is bound to it: add it to the bindings of the Composition")
	}

	for _, o := range i.objects {
		ref := identity.RefOf(o)
		gv, _ := schema.ParseGroupVersion(ref.APIVersion)

		if gv.Group == b.Resource.Group && ref.Kind == b.Resource.Kind && ref.Name == b.Name && slices.Contains([]string{"", b.Namespace}, ref.Namespace) {
			return o, nil
		}
	}

	gv := schema.GroupVersion{Group: b.Resource.Group, Version: b.Resource.Version}

	return i.fromCluster(ctx, identity.Ref{APIVersion: strings.TrimPrefix(gv.String(), "/"), Kind: b.Resource.Kind, Namespace: b.Namespace, Name: b.Name})
}

// fromCluster reads an object that is in no file.
func (i *inputs) fromCluster(ctx context.Context, ref identity.Ref) (map[string]any, error) {
	if i.cluster == nil {
		s, err := i.servers(i.Flags)
		if err != nil {
			return nil, fmt.Errorf("%s is in no file, and there is no cluster: %w", ref, err)
		}

		i.cluster = s
	}

	o, err := i.cluster.Get(ctx, ref)

	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, fmt.Errorf("%s is neither in the files nor in the cluster: %w", ref, err)
	case err != nil:
		return nil, fmt.Errorf("%s is in no file, and cannot be read from the cluster: %w", ref, err)
	}

	return o, nil
}
