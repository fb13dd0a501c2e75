package clitest

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// Container is a Deployment with one container, and entries as they are
// written.
func Container(t *testing.T, entries string) map[string]any {
	t.Helper()

	obj := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "image": "web:1", "imagePullPolicy": "Always", "command": []any{"sh"}},
		}}}},
	}

	var list []any
	if err := yaml.Unmarshal([]byte(entries), &list); err != nil {
		t.Fatal(err)
	}

	obj["metadata"].(map[string]any)["managedFields"] = list

	return obj
}

// Held is an entry that holds fields of the container.
func Held(manager, operation, fields string) string {
	return `- {manager: ` + manager + `, operation: ` + operation + `, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1:
    {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': ` + fields + `}}}}}}
`
}

// Fields of a container, as entries hold them.
const (
	WholeContainer = `{".": {}, "f:name": {}, "f:image": {}, "f:command": {}}`
	KeyAndCommand  = `{".": {}, "f:name": {}, "f:command": {}}`
	KeyAndImage    = `{".": {}, "f:name": {}, "f:image": {}}`
)
