package delivery_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const hidden = "apiVersion: v1\nkind: Secret\nstringData: {a: \"1\"}\nmetadata: {name: %s, annotations: {eno.azure.io/readiness-group: \"-200\"}}\n"

// label sets a label of the composition.
func (w *world) label(name, value string) {
	w.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, name, value)
	must(w, w.c.Patch(w.Context(), w.composition(), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// idle expects that nothing was reported about a world by now, nor created in it.
func (w *world) idle() {
	w.Helper()
	for what, s := range w.states() {
		if s != (enov1.ResourceState{}) {
			w.Errorf("%s: %s", what, describe(s))
		}
	}
	w.untouched()
}

// TestComplementaryFilters has two deliveries, each a release of the chart in a
// namespace of its own and so with a lease of its own, which together complete a composition, and together delete it.
func TestComplementaryFilters(t *testing.T) {
	w := newWorld(t)
	one := start(t, "--leader-elect", "--namespace=arbor-one", "--webhook-configuration=arbor-one", `--resource-filter=self.kind == "ConfigMap" && composition.metadata.name == "app"`)
	w.synthesize(configMap("mine", "1"), fmt.Sprintf(hidden, "yours"))
	cluster.Eventually(t, "what the one delivers is there, although it would come last", func() error {
		if s := w.state("ConfigMap", "mine"); !s.Reconciled || s.Ready == nil {
			return errors.New(describe(s))
		}

		return nil
	})
	quiet(t, one, time.Second)
	if s := w.state("Secret", "yours"); s != (enov1.ResourceState{}) || w.get("v1", "Secret", "yours") != nil {
		t.Errorf("the one has reported or changed something that the other delivers: %s", describe(s))
	}

	two := start(t, "--leader-elect", "--namespace=arbor-two", "--webhook-configuration=arbor-two", `--resource-filter=self.kind != "ConfigMap"`)
	w.ready()
	w.synthesize(configMap("mine", "2"), fmt.Sprintf(hidden, "others"))
	w.until("everything is done", func(s enov1.ResourceState) bool { return s.Reconciled })
	w.eventually("mine", "a", "2")
	if w.get("v1", "Secret", "yours") != nil || w.get("v1", "Secret", "others") == nil {
		t.Error("the other has not delivered its part")
	}
	for m, action := range map[*cluster.Manager]string{one: "apply", two: "delete"} {
		if m.Sum(t, `eno_reconciliation_actions_total{action="`+action+`"}`) == 0 {
			t.Errorf("one of them has made no %s", action)
		}
	}
	if got := one.Sum(t, `eno_reconciliation_actions_total{action="delete"}`); got != 0 {
		t.Error("the one has deleted what the other delivers")
	}
	w.remove()
	w.deleted()
	w.untouched()
}

// TestFilterFails has a filter that cannot be evaluated for some manifests.
func TestFilterFails(t *testing.T) {
	w := newWorld(t)
	w.perSlice = 1
	one := start(t, `--resource-filter=self.metadata.labels.shard == "a"`)
	labelled := "apiVersion: v1\nkind: ConfigMap\ndata: {a: \"1\"}\nmetadata: {name: labelled, labels: {shard: a}}\n"
	w.synthesize(configMap("bare", "1"), labelled)
	w.fails("ConfigMap", "bare", "it is left alone: cannot evaluate --resource-filter: no such key: labels")
	w.eventually("labelled", "a", "1")
	if w.config("bare") != nil {
		t.Error("it was not left alone")
	}
	if got := one.Sum(t, "eno_resource_filter_eval_errors_total"); got == 0 {
		t.Error("it was not counted")
	}
	// Who can tell delivers it, and what the first one cannot tell does not matter.
	start(t, `--resource-filter=!has(self.metadata.labels)`)
	w.ready()
	w.label("changed", "true") // has the first one look again
	quiet(t, one, time.Second)
	w.ready()
}

// TestOtherCompositions has compositions of other managers.
func TestOtherCompositions(t *testing.T) {
	w, unlabelled, foreign := newWorld(t), newWorld(t), newWorld(t)
	w.label("team", "a")
	foreign.label("team", "a")
	one := start(t, "--composition-namespace="+w.ns, "--composition-label-selector=team=a")
	two := start(t, "--composition-label-selector=team=a,moved!=true")
	unlabelled.synthesize(bare("one"), w.in(bare("wanted")))
	foreign.synthesize(bare("one"))
	w.synthesize(bare("one"), bare("wanted"))
	w.ready()
	foreign.ready()
	two.Stop()
	foreign.synthesize(bare("one"), bare("two"))
	w.synthesize(bare("one"))
	w.until("everything is done", func(s enov1.ResourceState) bool { return s.Reconciled })
	quiet(t, one, time.Second)
	unlabelled.idle()
	foreign.unseen("two")

	// The manifests of compositions of other managers are known.
	two = start(t, "--composition-label-selector=team=a,moved!=true")
	foreign.ready()
	unlabelled.synthesize(w.in(bare("wanted")), foreign.in(bare("two")))
	foreign.synthesize(bare("one"))
	foreign.until("everything is done", func(s enov1.ResourceState) bool { return s.Reconciled })
	if foreign.config("two") == nil {
		t.Error("an object of another client's composition was deleted")
	}
	// One that leaves is left alone, with its objects.
	quiet(t, two, time.Second)
	before := requests(t, two)
	foreign.label("moved", "true")
	cluster.Eventually(t, "it is seen that the composition leaves", func() error {
		if requests(t, two) == before {
			return errors.New("it was not checked again")
		}

		return nil
	})
	quiet(t, two, time.Second)
	foreign.merge(foreign.config("one"), `{data: {a: stolen}}`)
	foreign.remove()
	quiet(t, two, time.Second)
	if got := foreign.value("one", "a"); got != "stolen" {
		t.Errorf("it was put right: %q", got)
	}
	if s := foreign.state("ConfigMap", "one"); s.Deleted {
		t.Error("it was deleted")
	}
}

// unseen expects that nothing was done about an object.
func (w *world) unseen(name string) {
	w.Helper()
	if s := w.state("ConfigMap", name); s != (enov1.ResourceState{}) || w.config(name) != nil {
		w.Errorf("%s: %s", name, describe(s))
	}
}

// TestFilterRejected has invalid filters.
func TestFilterRejected(t *testing.T) {
	for flag, value := range map[string]string{
		"--resource-filter": "self.kind ==", "--composition-label-selector": "a==b==c", "--leader-election-id": "",
	} {
		m := server.LaunchManager(t, "--controllers=delivery", "--webhooks=false", flag+"="+value)
		if code := m.ExitCode(); code == 0 || len(m.Output()) == 0 {
			t.Errorf("%s=%s ended with %d and printed:\n%s", flag, value, code, m.Output())
		}
	}
}

// TestReadyByComposition has an object that is ready when its composition reports it.
func TestReadyByComposition(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.synthesize(configMap("one", "1", enov1.AnnotationReadiness, "composition.metadata.?labels.approved.orValue('') == self.data.a && composition.metadata.name == 'app'"))
	cluster.Eventually(t, "it is there, and not ready", func() error {
		if s := w.state("ConfigMap", "one"); !s.Reconciled || s.Ready != nil {
			return errors.New(describe(s))
		}

		return nil
	})
	w.label("approved", "2")
	quiet(t, m, time.Second)
	if s := w.state("ConfigMap", "one"); s.Ready != nil {
		t.Error("it is ready although it was not approved")
	}
	w.label("approved", "1")
	w.ready()
}
