package delivery_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// reconciled waits until a manifest is applied.
func (w *world) reconciled(kind, name string) {
	w.Helper()
	cluster.Eventually(w, name+" is reconciled", func() error {
		if s := w.state(kind, name); !s.Reconciled {
			return errors.New(describe(s))
		}

		return nil
	})
}

// TestLaterGroups has the first group of a new synthesis not become ready. The objects of
// the second one are kept as the synthesis before has them.
func TestLaterGroups(t *testing.T) {
	w := newWorld(t)
	start(t)
	first := func(value string) string {
		return configMap("first", value, enov1.AnnotationReadinessGroup, "1", enov1.AnnotationReadiness, "self.data.a == '1' || has(self.data.approved)")
	}
	second := func(value string) string { return configMap("second", value, enov1.AnnotationReadinessGroup, "2") }
	w.synthesize(first("1"), second("1"))
	w.ready()
	w.synthesize(first("2"), second("2"))
	w.reconciled("ConfigMap", "first")

	must(t, w.objects.Delete(t.Context(), w.config("second")))
	w.eventually("second", "a", "1")
	w.merge(w.config("second"), `{data: {a: stolen}}`)
	w.eventually("second", "a", "1")
	if s := w.state("ConfigMap", "second"); s.Reconciled || s.Ready != nil {
		t.Errorf("it is not its turn, and its state is %s", describe(s))
	}

	w.merge(w.config("first"), `{data: {approved: "yes"}}`)
	w.ready()
	w.eventually("second", "a", "2")
}

// vessels are a kind whose status no controller writes.
const vessels = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: vessels.delivered.example.com}
spec:
  group: delivered.example.com
  names: {kind: Vessel, plural: vessels, singular: vessel, listKind: VesselList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// TestOutdatedStatus has a readiness expression that holds for the status of the
// generation before.
func TestOutdatedStatus(t *testing.T) {
	w := newWorld(t)
	start(t)
	const apiVersion, kind = "delivered.example.com/v1", "Vessel"
	vessel := func(load string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: one, annotations: {%s: self.status.afloat}}\nspec: {load: %q}\n", apiVersion, kind, enov1.AnnotationReadiness, load)
	}
	observe := func(generation int) {
		text := fmt.Sprintf(`{"status": {"observedGeneration": %d, "afloat": true}}`, generation)
		must(t, w.objects.Status().Patch(t.Context(), w.get(apiVersion, kind, "one"), client.RawPatch(types.MergePatchType, []byte(text))))
	}
	w.synthesize(vessels, vessel("1"))
	w.reconciled(kind, "one")
	observe(1)
	w.ready()

	w.synthesize(vessels, vessel("2"))
	w.reconciled(kind, "one")
	if s := w.state(kind, "one"); s.Ready != nil {
		t.Errorf("the status is of generation 1, and generation %d counts as ready: %s", w.get(apiVersion, kind, "one").GetGeneration(), describe(s))
	}
	observe(2)
	w.ready()
}
