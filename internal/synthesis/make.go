package synthesis

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/executor"
	"github.com/arbor-control/arbor/internal/krm"
)

// maxLog is how much of the log of a program is shown with its failure.
const maxLog = 1 << 10

// made is what a synthesis made.
type made struct {
	manifests []string
	results   []enov1.Result
	inputs    []enov1.InputRevisions
}

// make runs the program of a composition, or copies the manifests of an earlier
// run.
func (r *Runner) make(ctx context.Context, c *enov1.Composition, s *enov1.Synthesizer) (made, error) {
	if c.Status.InFlightSynthesis.RolledBackTo != "" {
		return r.copy(ctx, c)
	}
	var m made
	// The manager has checked the same. The Composition may have changed since.
	if v := decide.Forbidden(c, s, r.Rules); v != nil {
		return m, errors.New(v.Message)
	}
	given, err := r.read(ctx, c, s, &m)
	if err != nil {
		return m, err
	}
	job := executor.Job{
		Command: s.Spec.Command, Image: s.Spec.Image, Input: given, Env: c.Spec.SynthesisEnv,
		CompositionNamespace: c.Namespace, CompositionName: c.Name, SynthesizerName: s.Name, SynthesisUUID: c.Status.InFlightSynthesis.UUID,
	}
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	result, err := r.Executor.Execute(limited, job)
	if err != nil {
		return m, &programError{err, result.Log}
	}
	out, err := krm.Decode(result.Output)
	if err != nil {
		return m, &programError{err, result.Log}
	}
	m.results = out.Results
	if failed(m.results) {
		return m, errors.New("the synthesizer reported an error")
	}
	if err := check(r.Manifests, out.Items); err != nil {
		return m, &programError{err, result.Log}
	}
	for _, item := range out.Items {
		m.manifests = append(m.manifests, item.Manifest)
	}

	return m, nil
}

// A programError is the failure of a program in its own output. The output may contain its inputs, so it is
// for the composition and not for the log.
type programError struct {
	err error
	// log is the end of what it wrote to standard error.
	log string
}

func (s *programError) Error() string {
	if s.log == "" {
		return "synthesizer error: " + s.err.Error()
	}
	log := s.log
	if len(log) > maxLog {
		log = "…" + log[len(log)-maxLog:]
	}

	return "synthesizer error: " + s.err.Error() + "; its output ends with: " + log
}

func (s *programError) Unwrap() error { return s.err }

// read gets the inputs from the API server, and encodes them. Which versions they
// have is what the synthesis is remembered by.
func (r *Runner) read(ctx context.Context, c *enov1.Composition, s *enov1.Synthesizer, m *made) ([]byte, error) {
	var (
		given    []krm.Input
		optional []string
	)
	for _, b := range decide.Bind(c, s, r.Rules) {
		if b.Optional {
			optional = append(optional, b.Key)
		}
		o, err := r.input(ctx, b)
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		given = append(given, krm.Input{Key: b.Key, Object: o.Object})
		m.inputs = append(m.inputs, decide.Revision(b.Key, o))
	}
	if text := decide.Mismatch(c, s, m.inputs); text != "" {
		return nil, errors.New("inputs changed in the meantime: " + text)
	}

	return krm.Encode(given, optional)
}

// input reads one input; nil if it is absent and may be.
func (r *Runner) input(ctx context.Context, b decide.Bound) (*unstructured.Unstructured, error) {
	t, problem := Resolve(r.Mapper, b, r.Rules)
	if problem == nil {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(t.Kind)
		err := r.Reader.Get(ctx, t.Key, o)
		switch {
		case err == nil:
			return o, nil
		case apierrors.IsNotFound(err):
			problem = &Problem{Text: fmt.Sprintf("%s %s does not exist", t.Kind.Kind, t.Key)}
		default:
			return nil, fmt.Errorf("cannot read input %q: %w", b.Key, err)
		}
	}
	if problem.Forbidden != nil {
		return nil, errors.New(problem.Text) // it is not absent
	}
	if b.Optional {
		return nil, nil //nolint:nilnil // absent is an answer
	}

	return nil, fmt.Errorf("input %q: %s", b.Key, problem.Text)
}

// copy takes the manifests of an earlier synthesis.
func (r *Runner) copy(ctx context.Context, c *enov1.Composition) (made, error) {
	to := c.Status.InFlightSynthesis.RolledBackTo
	from := decide.Find(&c.Status, to)
	if from == nil {
		return made{}, fmt.Errorf("cannot roll back to synthesis %s: it is not kept any more", to)
	}
	slices, err := r.slices(ctx, c, from)
	if err != nil {
		return made{}, err
	}
	if len(slices) != len(from.ResourceSlices) {
		return made{}, fmt.Errorf("cannot roll back to synthesis %s: %d of its %d slices are lost", to, len(from.ResourceSlices)-len(slices), len(from.ResourceSlices))
	}

	return made{manifests: decide.Copied(slices), results: from.Results}, nil
}
