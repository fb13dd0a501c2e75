package expression

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	limits "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// workLimit is how much one evaluation may read and write, in bytes. Calls and
	// iterations are steps, of which it has as many as Kubernetes allows. The largest
	// manifests have a tenth of it.
	//
	// The cost limit of CEL is not enough, and not used: it charges calls after they were
	// made, so that one call of lists.range uses all memory; calls with values of objects
	// cost next to nothing, whatever their size; and counting takes a time that grows with
	// the square of the length of a list.
	workLimit = limits.PerCallLimit * stepSize
	// stepSize is the work of a call or of an iteration, apart from what it reads.
	stepSize = 16
	// timeLimit of one evaluation. Most take microseconds.
	timeLimit = 2 * time.Second
	// valueLimit is how large a value may be that an expression computes for a manifest.
	valueLimit = limits.MaxRequestSizeBytes
)

// Names of variables that no expression can write, because of the first character.
const (
	varLimits      = "#limits"
	varInterrupted = "#interrupted"
)

// A Program is a compiled CEL expression. Its evaluation ends with an error when it
// exceeds a limit.
type Program struct{ program cel.Program }

// prepare makes a program of what the compiler has checked.
func (g guard) prepare(env *cel.Env, ast *cel.Ast) (*Program, error) {
	program, err := env.Program(ast, cel.InterruptCheckFrequency(limits.CheckFrequency), cel.CustomDecorator(g.decorate))
	if err != nil {
		return nil, fmt.Errorf("cannot prepare it: %w", err)
	}

	return &Program{program: program}, nil
}

// Eval evaluates the expression.
func (e *Program) Eval(variables map[string]any) (ref.Val, error) {
	known, err := interpreter.NewActivation(variables)
	if err != nil {
		return nil, err
	}
	out, _, err := e.program.Eval(&evaluation{Activation: known, left: workLimit, end: time.Now().Add(timeLimit)})
	canceled, ok := errors.AsType[interpreter.EvalCancelledError](err)
	switch {
	case ok && canceled.Cause == interpreter.CostLimitExceeded:
		err = LimitError("it needs more computation than an expression may use: use shorter lists and strings, and fewer nested loops")
	case ok:
		err = LimitError(canceled.Message)
	}

	return out, err
}

// A LimitError reports that an expression exceeds a limit. It does so again the next time.
type LimitError string

func (e LimitError) Error() string { return string(e) }

// An evaluation has the variables of an expression, and what is left of its limits.
type evaluation struct {
	interpreter.Activation

	left   int64
	end    time.Time
	checks int
}

// ResolveName also resolves the names that only the interpreter uses.
func (e *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case varLimits:
		return e, true
	case varInterrupted: // after each iteration
		e.spend(stepSize)

		return false, true
	}

	return e.Activation.ResolveName(name)
}

// spend cancels the evaluation if it uses more than is left.
func (e *evaluation) spend(work int64) {
	if work < 0 || work > e.left {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "work limit exceeded"})
	}
	e.left -= work
	if e.checks++; e.checks%limits.CheckFrequency == 0 && time.Now().After(e.end) {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: fmt.Sprintf("it takes longer than %s", timeLimit)})
	}
}

// spend charges an evaluation.
func spend(vars interpreter.Activation, work int64) {
	found, _ := vars.ResolveName(varLimits)
	if e, ok := found.(*evaluation); ok {
		e.spend(work)
	}
}

// A guard has calls charged before they are made. It has the implementations of
// functions, by ID of the overload and by name of the function.
type guard map[string]*functions.Overload

func newGuard(env *cel.Env) (guard, error) {
	g := guard{}
	for _, f := range env.Functions() {
		bindings, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("cannot guard function %s: %w", f.Name(), err)
		}
		for _, b := range bindings {
			g[b.Operator] = b
		}
	}

	return g, nil
}

// decorate replaces the steps of a program that can use much memory or time.
func (g guard) decorate(step interpreter.Interpretable) (interpreter.Interpretable, error) {
	switch s := step.(type) {
	case interpreter.InterpretableConstructor:
		return &guardedLiteral{InterpretableConstructor: s}, nil
	case interpreter.InterpretableCall:
		implementation := g[s.OverloadID()]
		if implementation == nil {
			implementation = g[s.Function()]
		}
		if f := s.Function(); f == operators.Equals || f == operators.NotEquals {
			implementation = &functions.Overload{Binary: comparison(f)}
		}
		if len(s.Args()) == 0 || implementation == nil || implementation.NonStrict {
			return step, nil
		}

		return &guardedCall{InterpretableCall: s, implementation: implementation}, nil
	}

	return step, nil
}

// comparison implements the operators that the interpreter has no function for.
func comparison(operator string) functions.BinaryOp {
	if operator == operators.Equals {
		return types.Equal
	}

	return func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }
}

// A guardedLiteral is a list or a map that an expression writes.
type guardedLiteral struct {
	interpreter.InterpretableConstructor
}

// Eval charges and builds it.
func (l *guardedLiteral) Eval(vars interpreter.Activation) ref.Val {
	spend(vars, stepSize+elementSize*int64(len(l.InitVals())))

	return l.InterpretableConstructor.Eval(vars)
}

// A guardedCall is a call of a function that fails if an argument does.
type guardedCall struct {
	interpreter.InterpretableCall

	implementation *functions.Overload
}

// Eval evaluates the arguments, charges the call, and makes it.
func (c *guardedCall) Eval(vars interpreter.Activation) ref.Val {
	parameters := c.Args()
	args := make([]ref.Val, len(parameters))
	for i, p := range parameters {
		if args[i] = p.Eval(vars); types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	// Amounts far beyond the limit could overflow when they are added.
	spend(vars, stepSize+min(work(c.Function(), args), workLimit+1))

	return types.LabelErrNode(c.ID(), c.call(args))
}

// call chooses the implementation as the interpreter does.
func (c *guardedCall) call(args []ref.Val) ref.Val {
	f := c.implementation
	if f.OperandTrait == 0 || args[0].Type().HasTrait(f.OperandTrait) {
		switch {
		case len(args) == 1 && f.Unary != nil:
			return f.Unary(args[0])
		case len(args) == 2 && f.Binary != nil:
			return f.Binary(args[0], args[1])
		case f.Function != nil:
			return f.Function(args...)
		}
	}
	if receiver, ok := args[0].(traits.Receiver); ok && args[0].Type().HasTrait(traits.ReceiverType) {
		return receiver.Receive(c.Function(), c.OverloadID(), args[1:])
	}

	return types.NewErr("no such overload: %s", c.Function())
}

// times multiplies amounts of work. What is beyond the limit need not be exact.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}

	return a * b
}
