// Package fieldstest makes objects for benchmarks of package fields. Both the benchmarks of the
// engine and `make bench` use them, because figures of different objects could not be compared.
package fieldstest

import "fmt"

// A Size is how large an object is.
type Size struct {
	Name                            string
	Managers, Containers, Variables int
}

// Sizes are those that are measured: many managers, many containers, and the largest possible
// object, a MiB with its entries.
var Sizes = []Size{
	{Name: "10-managers", Managers: 10, Containers: 5, Variables: 10},
	{Name: "50-containers", Managers: 3, Containers: 50, Variables: 20},
	{Name: "1-mib", Managers: 10, Containers: 50, Variables: 52},
}

const (
	// Applier is the manager that applies. The other managers update.
	Applier = "eno"
	// Scope selects the fields that they share.
	Scope = "spec.template.spec.initContainers"
)

// Deployment returns an object as the API server returns it. All managers hold all init containers,
// and each of them every second variable.
func (s Size) Deployment() map[string]any {
	held := make([]map[string]any, s.Managers)
	for m := range held {
		held[m] = map[string]any{}
	}
	var containers []any
	for c := range s.Containers {
		name := fmt.Sprintf("container-%d", c)
		containers = append(containers, map[string]any{
			"name": name, "image": "registry.example.com/some/image:1.2.3", "command": []any{"run", "it"}, "env": s.variables(),
		})
		for m := range held {
			item := set("f:name", "f:image", "f:command")
			item["f:env"] = s.variablesOf(m)
			held[m][key(name)] = item
		}
	}

	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "managedFields": entries(held)},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"initContainers": containers}}},
	}
}

func (s Size) variables() []any {
	var all []any
	for v := range s.Variables {
		all = append(all, map[string]any{"name": variable(v), "value": "some value of a usual length"})
	}

	return all
}

// variablesOf returns the fields that a manager holds of the variables of a container.
func (s Size) variablesOf(manager int) map[string]any {
	held := map[string]any{}
	for v := range s.Variables {
		if (v+manager)%2 == 0 {
			held[key(variable(v))] = set("f:name", "f:value")
		}
	}

	return held
}

// entries returns the entries of managers that hold fields of the init containers.
func entries(held []map[string]any) []any {
	var all []any
	for m, containers := range held {
		manager, operation := fmt.Sprintf("manager-%d", m), "Update"
		if m == 0 {
			manager, operation = Applier, "Apply"
		}
		all = append(all, map[string]any{
			"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:template": map[string]any{"f:spec": map[string]any{"f:initContainers": containers}}}},
		})
	}

	return all
}

func variable(v int) string { return fmt.Sprintf("VARIABLE_%d", v) }

func key(name string) string { return fmt.Sprintf(`k:{"name":%q}`, name) }

// set returns the set of an item with some of its fields.
func set(names ...string) map[string]any {
	all := map[string]any{".": map[string]any{}}
	for _, name := range names {
		all[name] = map[string]any{}
	}

	return all
}
