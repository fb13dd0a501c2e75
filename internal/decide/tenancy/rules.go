package tenancy

import (
	"fmt"
	"slices"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// Rules are what Compositions may use of other namespaces. The zero value restricts nothing.
type Rules struct {
	Scope Scope
	// InputNamespaces are those that every Composition may bind inputs of.
	InputNamespaces []string
}

// A Violation is a rule that a Composition breaks.
type Violation struct {
	// Condition of the Composition that reports it, with its reason and message.
	Condition, Reason, Message string
}

// A Binding is an object that a Composition chose for an input. The author of a Synthesizer is
// trusted, so objects that a Synthesizer chooses need no permission.
type Binding struct {
	// Of is the namespace of the Composition.
	Of              string
	Key, Kind       string
	Namespace, Name string
}

// Input returns why a Composition may not bind an object, nil if it may: it must be in the
// Composition's own namespace or in one that is shared. An object without namespace is
// cluster-scoped, or does not exist.
func (r Rules) Input(b Binding) *Violation {
	switch {
	case !r.Scope.Restricts(), b.Namespace == b.Of && b.Namespace != "", b.Namespace != "" && slices.Contains(r.InputNamespaces, b.Namespace):
		return nil
	case b.Namespace == "":
		return forbidden(enov1.ReasonClusterScoped, fmt.Sprintf(
			"binding %q: %s %s has no namespace, and a Composition may bind objects of a namespace only; name namespace %s, or have the Synthesizer bind it in refs[].resource", b.Key, b.Kind, b.Name, b.Of))
	}

	return forbidden(enov1.ReasonNamespaceNotAllowed, fmt.Sprintf(
		"binding %q: %s %s/%s is not in namespace %s; bind an object of this namespace, or have an administrator add %s to --input-namespaces of the manager", b.Key, b.Kind, b.Namespace, b.Name, b.Of, b.Namespace))
}

// ClusterScoped returns why a Composition may not bind an object that turned out to be
// cluster-scoped, although the binding names a namespace. It is nil if it may.
func (r Rules) ClusterScoped(b Binding) *Violation {
	if !r.Scope.Restricts() {
		return nil
	}

	return forbidden(enov1.ReasonClusterScoped, fmt.Sprintf(
		"binding %q: %s is a cluster-scoped kind, and a Composition may bind objects of a namespace only; have the Synthesizer bind %s in refs[].resource", b.Key, b.Kind, b.Name))
}

// Pinned returns why a Composition may not bind another object to a pinned input. The scope
// does not matter.
func Pinned(b Binding, synthesizer string) *Violation {
	return forbidden(enov1.ReasonPinned, fmt.Sprintf(
		"binding %q: Synthesizer %s has pinned this input, and %s is not used; remove the binding", b.Key, synthesizer, named(b)))
}

func named(b Binding) string {
	if b.Namespace == "" {
		return b.Kind + " " + b.Name
	}

	return b.Kind + " " + b.Namespace + "/" + b.Name
}

func forbidden(reason, message string) *Violation {
	return &Violation{Condition: enov1.ConditionInputForbidden, Reason: reason, Message: message}
}

// loaders are variables with which a dynamic linker, library, shell, interpreter or Git runs code
// that is not part of the program. A star stands for the rest of a name: an interpreter whose
// variables keep growing in number is rejected as a whole.
var loaders = []string{
	"LD_*", "GCONV_PATH", "OPENSSL_*", "PATH", "ENV", "BASH_ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "PS4", "BROWSER",
	"NODE_*", "PERL5*", "PERLLIB", "RUBYOPT", "RUBYLIB", "PYTHON*", "LUA_INIT*", "ERL_*",
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "DOTNET_*", "CORECLR_*", "GIT_*",
}

// Env returns why a Composition may not set its environment, nil if it may.
func (r Rules) Env(all []enov1.EnvVar) *Violation {
	if !r.Scope.Restricts() {
		return nil
	}
	for _, e := range all {
		if isLoader(e.Name) {
			return &Violation{Condition: enov1.ConditionEnvForbidden, Reason: enov1.ReasonLoaderVariable, Message: fmt.Sprintf(
				"synthesisEnv: variable %q can make the program of the Synthesizer run other code; remove it, or have the Synthesizer set it in its command", e.Name)}
		}
	}

	return nil
}

func isLoader(name string) bool {
	name, _, _ = strings.Cut(name, "=") // the text after it would be part of the value

	return slices.ContainsFunc(loaders, func(pattern string) bool {
		start, isPrefix := strings.CutSuffix(pattern, "*")

		return name == pattern || isPrefix && strings.HasPrefix(name, start)
	})
}

// Hides reports whether Compositions of one namespace learn nothing about those of another.
func (r Rules) Hides(from, other string) bool { return r.Scope.Restricts() && from != other }

// WaitsFor reports whether the deletion of a Composition waits for dependents in a namespace. Those
// of other namespaces need its permission.
func (r Rules) WaitsFor(target *enov1.Composition, dependents string) bool {
	if !r.Hides(target.Namespace, dependents) {
		return true
	}
	for allowed := range strings.SplitSeq(target.Annotations[enov1.AnnotationDependentsFrom], ",") {
		if allowed = strings.TrimSpace(allowed); allowed == "*" || allowed == dependents {
			return true
		}
	}

	return false
}
