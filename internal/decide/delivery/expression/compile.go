package expression

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxSource is how many bytes of expressions are kept compiled. Expressions are few,
// since programs write them; a program that writes a new one each time costs a
// compilation each time, and no memory.
const maxSource = 1 << 20

// These are the variables of expressions.
const (
	VarSelf        = "self"
	VarComposition = "composition"
	VarManaged     = "pathManagedByEno"
)

// A Compiler compiles expressions once.
type Compiler struct {
	env   *cel.Env
	guard guard
	fail  error

	mu       sync.Mutex
	compiled map[string]*Program
	// source is how many bytes of expressions are compiled.
	source int
}

// NewCompiler is one for expressions about self and its composition, and more. Its
// functions are those of Eno. The environment of Kubernetes lacks some of them, and
// rejects literals with values of several types, which overrides need. Its limits are
// used, see workLimit.
func NewCompiler(more ...cel.EnvOption) *Compiler {
	env, err := cel.NewEnv(append([]cel.EnvOption{
		cel.Variable(VarSelf, cel.DynType), cel.Variable(VarComposition, cel.DynType), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		ext.Strings(), ext.Encoders(), ext.Lists(), ext.Sets(), ext.Math(),
	}, more...)...)

	c := &Compiler{env: env, fail: err, compiled: map[string]*Program{}}
	if err == nil {
		c.guard, c.fail = newGuard(env)
	}

	return c
}

// ForOverrides are the variables and functions that only overrides have.
func ForOverrides() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable(VarManaged, cel.BoolType),
		cel.Function("compareResourceQuantities", cel.Overload(
			"compare_resource_quantities", []*cel.Type{cel.DynType, cel.DynType}, cel.IntType, cel.BinaryBinding(compareQuantities),
		)),
	}
}

// Compile returns the program of an expression.
func (c *Compiler) Compile(text string) (*Program, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.compiled[text]; ok {
		return e, nil
	}
	ast, issues := c.env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	e, err := c.guard.prepare(c.env, ast)
	if err != nil {
		return nil, err
	}
	if c.source += len(text); c.source > maxSource {
		clear(c.compiled)
		c.source = len(text)
	}
	c.compiled[text] = e

	return e, nil
}

// compareQuantities is -1, 0 or 1. A quantity may be written as a number, too, as
// in manifests.
func compareQuantities(a, b ref.Val) ref.Val {
	var both [2]resource.Quantity
	for i, v := range []ref.Val{a, b} {
		switch v.(type) {
		case types.String, types.Int, types.Uint, types.Double:
		default:
			return types.MaybeNoSuchOverloadErr(v)
		}
		q, err := resource.ParseQuantity(fmt.Sprint(v.Value()))
		if err != nil {
			return types.NewErr("cannot read quantity %q: %v", fmt.Sprint(v.Value()), err)
		}
		both[i] = q
	}

	return types.Int(both[0].Cmp(both[1]))
}

// Plain is a value of an expression as JSON has it.
func Plain(v ref.Val) (any, error) {
	if deep(v) > valueLimit {
		return nil, fmt.Errorf("cannot use a value of more than %d bytes", valueLimit)
	}

	return plainValue(v)
}

func plainValue(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil //nolint:nilnil // that is what null is
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Double:
		return plainNumber(float64(v))
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil //nolint:nilnil // nothing was found
		}

		return plainValue(v.GetValue())
	case traits.Mapper:
		return plainMap(v)
	case traits.Lister:
		return plainList(v)
	}

	return nil, fmt.Errorf("cannot use a value of type %s: convert it to an int or a string", v.Type().TypeName())
}

func plainNumber(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("cannot use a number that JSON has not")
	}

	return f, nil
}

func plainList(v traits.Lister) (any, error) {
	all := []any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		item, err := plainValue(it.Next())
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}

	return all, nil
}

func plainMap(v traits.Mapper) (any, error) {
	all := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("cannot use a key of type %s: convert it to a string", key.Type().TypeName())
		}
		value, err := plainValue(v.Get(key))
		if err != nil {
			return nil, err
		}
		all[string(name)] = value
	}

	return all, nil
}
