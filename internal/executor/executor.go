package executor

import (
	"context"
	"slices"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A Job is one run of a program.
type Job struct {
	// Command and its arguments.
	Command []string
	// Image that the command is in, for executors that have images.
	Image string
	// Input is what the program reads from standard input.
	Input []byte
	// Env is what the composition adds to the environment.
	Env []enov1.EnvVar

	// The composition and synthesis that the program is run for.
	CompositionNamespace, CompositionName string
	SynthesizerName                       string
	SynthesisUUID                         string
}

// A Result is what a program wrote.
type Result struct {
	// Output is all of standard output.
	Output []byte
	// Log is the end of standard error.
	Log string
}

// An Executor runs programs. Execute returns when the program has ended, and has
// ended it when ctx ends. The log is there even if there is an error.
type Executor interface {
	Execute(ctx context.Context, job Job) (Result, error)
}

// Environment returns the variables that a program has wherever it runs. Names
// that it relies on cannot be changed by a composition; of two of one name, the
// first counts.
func (j Job) Environment() []enov1.EnvVar {
	env := []enov1.EnvVar{
		{Name: "COMPOSITION_NAME", Value: j.CompositionName},
		{Name: "COMPOSITION_NAMESPACE", Value: j.CompositionNamespace},
		{Name: "SYNTHESIS_UUID", Value: j.SynthesisUUID},
		{Name: "IMAGE", Value: j.Image},
	}
	for _, e := range j.Env {
		if e.Name != "" && !slices.ContainsFunc(env, func(have enov1.EnvVar) bool { return have.Name == e.Name }) {
			env = append(env, e)
		}
	}

	return env
}
