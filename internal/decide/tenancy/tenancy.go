// Package tenancy has the rules between tenants: what a Composition of one namespace may use,
// read, deliver and delay, depending on --delivery-scope.
package tenancy

import "fmt"

// A Scope is what the author of a Composition can reach.
type Scope string

// The scopes.
const (
	// Cluster trusts every author of a Composition with everything that the manager may do,
	// as Eno does.
	Cluster Scope = "cluster"
	// Namespace keeps every Composition within its own namespace: it delivers as a
	// ServiceAccount of that namespace.
	Namespace Scope = "namespace"
)

// ParseScope reads the value of --delivery-scope.
func ParseScope(text string) (Scope, error) {
	switch s := Scope(text); s {
	case Cluster, Namespace:
		return s, nil
	default:
		return "", fmt.Errorf("it must be %s or %s", Cluster, Namespace)
	}
}

// Restricts reports whether Compositions are kept within their namespaces.
func (s Scope) Restricts() bool { return s == Namespace }
