package eno_test

import (
	"fmt"
	"testing"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// TestBadManifests has programs that print manifests with common mistakes. The composition names
// the object, the field and how to repair it, and other objects are not affected.
func TestBadManifests(t *testing.T) {
	const list = `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[%s]}`
	e := newEnv(t)
	for name, tc := range map[string]struct {
		reason       string
		item         string
		status, want string
	}{
		"homeless": {
			reason: "An object of a namespaced kind needs a namespace.",
			item:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bare"}}`, status: enov1.StatusReconciling,
			want: `ConfigMap bare: metadata.namespace is missing: ConfigMap is a namespaced kind; have the synthesizer write metadata.namespace`,
		},
		"patch": {
			reason: "The same is so for a Patch.",
			item:   `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"bare"},"patch":{"apiVersion":"v1","kind":"ConfigMap","ops":[{"op":"add","path":"/data","value":{}}]}}`,
			status: enov1.StatusReconciling, want: `metadata.namespace is missing: ConfigMap is a namespaced kind`,
		},
		"list": {
			reason: "A list is not an object.",
			item:   fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":%q}}]}`, e.namespace),
			status: enov1.StatusSynthesisBackoff, want: `items[0]: kind "List" is a list of 1 object, not an object: write each of its items into items of the ResourceList`,
		},
		"version": {
			reason: "An apiVersion has one slash at most.",
			item:   fmt.Sprintf(`{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":"x","namespace":%q}}`, e.namespace),
			status: enov1.StatusSynthesisBackoff, want: `items[0]: ConfigMap ` + e.namespace + `/x: apiVersion "a/b/c" is invalid: write GROUP/VERSION, such as "apps/v1", or "v1" for the core group`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &env{TB: t, Client: e.Client, namespace: e.namespace}
			p := e.program(name, fmt.Sprintf(list, tc.item))
			c := &enov1.Composition{}
			c.Namespace, c.Name, c.Spec.Synthesizer.Name = e.namespace, name, p.Name
			must(t, e.Create(t.Context(), c))
			e.status(name, tc.status, tc.want)
			e.remove(name)
			e.gone(name)
		})
	}
	e.compose("fine", nil, configMap("one", "1"))
	e.ready("fine")
}
