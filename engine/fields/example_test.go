package fields_test

import (
	"encoding/json"
	"fmt"

	"github.com/arbor-control/arbor/engine/fields"
)

// web was made by a controller that calls itself Go-http-client. Later, eno
// applied the image of its init container.
const web = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {
    "name": "web",
    "managedFields": [
      {"manager": "eno", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1":
        {"f:spec": {"f:template": {"f:spec": {"f:initContainers": {"k:{\"name\":\"base-os-bash\"}": {"f:image": {}}}}}}}},
      {"manager": "Go-http-client", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1":
        {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:initContainers": {".": {}, "k:{\"name\":\"base-os-bash\"}":
          {".": {}, "f:command": {}, "f:name": {}, "f:resources": {}}}}}}}}
    ]
  },
  "spec": {"replicas": 4, "template": {"spec": {"initContainers": [
    {"name": "base-os-bash", "image": "base:1", "command": ["sh"], "resources": {}}
  ]}}}
}`

func read() (live map[string]any, entries fields.Entries) {
	if err := json.Unmarshal([]byte(web), &live); err != nil {
		panic(err)
	}
	entries, err := fields.Read(live)
	if err != nil {
		panic(err)
	}

	return live, entries
}

// The server rejects an apply without the init container. After the plan, the apply removes the
// container and nothing else.
func Example() {
	live, entries := read()
	scope := fields.MustParseScope("spec.template.spec.initContainers")

	tree := fields.New(live, entries)
	owned := tree.CheckOwnership(scope, "eno")
	fmt.Println("fully owned:", owned.FullyOwned, "other managers:", owned.OtherManagers)
	for _, r := range tree.Removals("eno", nil, nil) {
		fmt.Println(r)
	}

	plan, err := fields.NewPlan(live, entries, fields.Request{Scope: scope, To: "eno"})
	if err != nil {
		fmt.Println(err)
	}
	for _, m := range plan.Moves {
		fmt.Println("from", m.From, "to", m.To)
		for _, path := range fields.FormatPaths(m.Fields) {
			fmt.Println(" ", path)
		}
	}
	for _, r := range fields.New(live, plan.Entries).Removals("eno", nil, nil) {
		fmt.Println(r)
	}
	// Output:
	// fully owned: false other managers: [Go-http-client]
	// spec.template.spec.initContainers[name=base-os-bash]: Partial without spec.template.spec.initContainers[name=base-os-bash].image, because of Go-http-client (Update apps/v1)
	// from Go-http-client (Update apps/v1) to eno (Apply)
	//   spec.template.spec.initContainers[name=base-os-bash]
	//   spec.template.spec.initContainers[name=base-os-bash].command
	//   spec.template.spec.initContainers[name=base-os-bash].name
	//   spec.template.spec.initContainers[name=base-os-bash].resources
	// spec.template.spec.initContainers[name=base-os-bash]: Removed
}

func ExampleNew() {
	live, entries := read()
	tree := fields.New(live, entries)
	for n := range tree.Root().All() {
		if len(n.Children) == 0 {
			fmt.Println(fields.FormatPath(n.Path()), n.State, tree.Identities(n.Owners))
		}
	}
	// Output:
	// metadata Unowned []
	// spec.replicas Sole [Go-http-client (Update apps/v1)]
	// spec.template.spec.initContainers[name=base-os-bash].command Sole [Go-http-client (Update apps/v1)]
	// spec.template.spec.initContainers[name=base-os-bash].image Sole [eno (Apply)]
	// spec.template.spec.initContainers[name=base-os-bash].name Sole [Go-http-client (Update apps/v1)]
	// spec.template.spec.initContainers[name=base-os-bash].resources Sole [Go-http-client (Update apps/v1)]
}

func ExampleNewPlan_whole() {
	live, entries := read()
	plan, err := fields.NewPlan(live, entries, fields.Request{Scope: fields.MustParseScope("spec"), To: "eno", Mode: fields.Whole})
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range plan.Entries {
		fmt.Println(e.Identity(), e.Fields.Size())
	}
	data, err := json.Marshal(plan.Entries)
	fmt.Println(string(data), err)
	// Output:
	// eno (Apply) 7
	// [{"manager":"eno","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:initContainers":{".":{},"k:{\"name\":\"base-os-bash\"}":{".":{},"f:command":{},"f:image":{},"f:name":{},"f:resources":{}}}}}}}}] <nil>
}

func ExampleUndo() {
	live, entries := read()
	plan, err := fields.NewPlan(live, entries, fields.Request{Scope: fields.MustParseScope("spec"), To: "eno"})
	if err != nil {
		fmt.Println(err)
	}
	undo, err := fields.Undo(live, plan.Entries, plan.Record())
	fmt.Println(plan.Changed(), undo.Changed(), fields.Equal(entries, undo.Entries), err)
	// Output: true true true <nil>
}

func ExampleParseScope() {
	for _, text := range []string{
		`spec.template.spec.initContainers[name=~^aks-]`,
		`.spec.ports[port=80,protocol=TCP].targetPort`,
		`metadata.annotations."eno.azure.io/owner"`,
		`spec.containers[0]`,
	} {
		fmt.Println(fields.ParseScope(text))
	}
	// Output:
	// spec.template.spec.initContainers[name=~^aks-] <nil>
	// spec.ports[port=80,protocol=TCP].targetPort <nil>
	// metadata.annotations["eno.azure.io/owner"] <nil>
	//  cannot read scope "spec.containers[0]" at position 17: there is "0" where a key is expected: items are known by what is in them, like [name=web], and not by their position
}

func ExampleTree_Desired() {
	live, entries := read()
	wanted := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"initContainers": []any{
		map[string]any{"name": "another", "image": "base:2"},
	}}}}}
	for _, path := range fields.FormatPaths(fields.New(live, entries).Desired(wanted)) {
		fmt.Println(path)
	}
	// Output:
	// spec.template.spec.initContainers[name=another]
	// spec.template.spec.initContainers[name=another].image
	// spec.template.spec.initContainers[name=another].name
}
