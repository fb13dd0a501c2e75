package eno_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managers are the field managers of a ConfigMap.
func (e *env) managers(name string) map[string]bool {
	e.Helper()
	all := map[string]bool{}
	for _, entry := range e.config(name).ManagedFields {
		all[entry.Manager] = true
	}

	return all
}

// TestFieldManager delivers under another name than the default. An object that the
// control plane with the default name has applied, too, is not deleted.
func TestFieldManager(t *testing.T) {
	e := newEnv(t)
	e.restartWith("--field-manager=eno-edge")
	e.compose("app", nil, configMap("own", "1"), configMap("both", "1"), configMap("both-dropped", "1"), configMap("dropped", "1"))
	e.ready("app")
	if got := e.managers("own"); !got["eno-edge"] || got["eno"] {
		t.Errorf("the field managers are %v", got)
	}
	for _, name := range []string{"both", "both-dropped"} {
		must(t, e.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(e.object(configMap(name, "1"))), client.FieldOwner("eno"), client.ForceOwnership))
	}
	// What is delivered is corrected as usual.
	o := e.config("own")
	o.Data["a"] = "drift"
	must(t, e.Update(t.Context(), o, client.FieldOwner("another")))
	e.value("own", "1")

	e.change("app", configMap("own", "2"), configMap("both", "1"))
	e.absent("dropped")
	e.ready("app")
	// The other control plane gives one of them up.
	must(t, e.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(e.object(bare("both"))), client.FieldOwner("eno")))
	if got := e.managers("both"); !got["eno-edge"] || got["eno"] {
		t.Errorf("the field managers are %v", got)
	}
	e.remove("app")
	e.gone("app")
	e.absent("own", "both")
	e.exist("both-dropped")
}
