package delivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// An override, as it is written.
type override struct {
	Path            string `json:"path"`
	Condition       string `json:"condition,omitempty"`
	Value           any    `json:"value,omitempty"`
	ValueExpression string `json:"valueExpression,omitempty"`
}

func overrides(all ...override) string {
	data, _ := json.Marshal(all) //nolint:errchkjson // there is nothing in it that could not be written

	return string(data)
}

func (w *world) workload() *unstructured.Unstructured {
	w.Helper()

	return w.get("apps/v1", "Deployment", "web")
}

func (w *world) replicas() int64 {
	w.Helper()
	n, _, _ := unstructured.NestedInt64(w.workload().Object, "spec", "replicas")

	return n
}

func (w *world) scaled(want int64) {
	w.Helper()
	cluster.Eventually(w, fmt.Sprintf("there are %d replicas", want), func() error {
		if n := w.replicas(); n != want {
			return fmt.Errorf("there are %d", n)
		}

		return nil
	})
}

// TestOverride has replicas follow what an operator sets as long as an annotation
// of the live object reports it.
func TestOverride(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	text := strings.ReplaceAll(deployment, "NAME", "web")
	text = strings.Replace(text, "labels: {team: a}", fmt.Sprintf("labels: {team: a}, annotations: {%s: %q}", enov1.AnnotationOverrides, overrides(override{
		Path: "self.spec.replicas", Condition: "self.metadata.?annotations.?scale.orValue('') == 'manual'", ValueExpression: "self.spec.replicas",
	})), 1)
	w.synthesize(text)
	w.ready()
	w.scaled(4)
	if _, ok := w.workload().GetAnnotations()[enov1.AnnotationOverrides]; ok {
		t.Error("overrides became a part of the object")
	}

	quiet(t, m, 2*time.Second)
	w.merge(w.workload(), `{metadata: {annotations: {scale: manual}}, spec: {replicas: 7}}`)
	quiet(t, m, time.Second)
	w.scaled(7)
	w.merge(w.workload(), `{spec: {replicas: 9}}`)
	quiet(t, m, time.Second)
	w.scaled(9)
	// Everything else is put right as ever.
	w.merge(w.workload(), `{metadata: {labels: {team: b}}}`)
	cluster.Eventually(t, "the label is put right", func() error {
		if got := w.workload().GetLabels()["team"]; got != "a" {
			return errors.New(got)
		}

		return nil
	})
	// However fast the operator is, nothing that was read before is written over it.
	const times = 200
	for i := range times {
		w.merge(w.workload(), fmt.Sprintf(`{spec: {replicas: %d}}`, 10+i))
		for range 3 {
			if n := w.replicas(); n != int64(10+i) {
				t.Fatalf("%d replicas became %d", 10+i, n)
			}
		}
	}
	quiet(t, m, 2*time.Second)
	w.scaled(9 + times)
	w.ready()

	// A status costs a look, and no more.
	tries := 0
	cluster.Eventually(t, "there is no apply for a status", func() error {
		before := applies(t, m) // one for the last replicas may still be on its way
		tries++
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
		patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "Tested", "status": "True", "message": "%d"}]}}`, tries)
		must(t, w.c.Status().Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(other)))
		quiet(t, m, time.Second)
		if got := applies(t, m) - before; got != 0 {
			return fmt.Errorf("there were %v", got)
		}

		return nil
	})

	w.merge(w.workload(), `{metadata: {annotations: {scale: null}}}`)
	w.scaled(4)
	w.merge(w.workload(), `{spec: {replicas: 8}}`)
	w.scaled(4)
	w.ready()

	// Another process knows as much.
	m.Kill()
	w.merge(w.workload(), `{metadata: {annotations: {scale: manual}}, spec: {replicas: 3}}`)
	m = start(t)
	cluster.Eventually(t, "the other has looked", func() error {
		if applies(t, m) == 0 {
			return errors.New("it has not")
		}

		return nil
	})
	quiet(t, m, time.Second)
	w.scaled(3)
}

// TestOverrideComposition has a composition with an annotation that leaves an object alone.
func TestOverrideComposition(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	annotate := func(value string) {
		patch := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/pause": %s}}}`, value)
		must(t, w.c.Patch(t.Context(), w.composition(), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	annotate(`"true"`)
	paused := override{
		Path:      fmt.Sprintf("self.metadata.annotations[%q]", enov1.AnnotationDisableReconciliation),
		Condition: "composition.metadata.annotations[?'example.com/pause'].orValue('') == 'true'", Value: "true",
	}
	self := paused
	self.Condition = "'pause' in self.?data.orValue({})"
	w.synthesize(configMap("one", "1", enov1.AnnotationOverrides, overrides(paused)), configMap("two", "2", enov1.AnnotationOverrides, overrides(self)))
	w.ready()
	if w.config("one") != nil {
		t.Error("a disabled object was created")
	}
	annotate("null")
	w.eventually("one", "a", "1")
	annotate(`"true"`)
	cluster.Eventually(t, "it is left alone", func() error {
		w.merge(w.config("one"), `{data: {a: stolen}}`)
		quiet(t, m, time.Second)
		if got := w.value("one", "a"); got != "stolen" {
			return errors.New(got)
		}

		return nil
	})
	annotate("null")
	w.eventually("one", "a", "1")

	// The object itself can have the annotation, and remove it.
	w.merge(w.config("two"), `{data: {a: stolen, pause: "1"}}`)
	quiet(t, m, time.Second)
	w.eventually("two", "a", "stolen")
	w.merge(w.config("two"), `{data: {pause: null}}`)
	w.eventually("two", "a", "2")

	// An object that is left alone outlives its composition.
	annotate(`"true"`)
	w.remove()
	w.deleted()
	if w.config("one") == nil || w.config("two") != nil {
		t.Error("one had to stay, and two to go")
	}
}

// TestOverrideReleases has a field released to the client that sets it. It is in the scope of what
// is taken over from others, and is not: it is not to go.
func TestOverrideReleases(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	released := overrides(override{Path: "self.data.a", Condition: "has(self.data.a) && !pathManagedByEno"})
	w.synthesize(configMap("one", "1", enov1.AnnotationMigrateOwnership, "data", enov1.AnnotationOverrides, released))
	w.ready()
	w.eventually("one", "a", "1")
	w.merge(w.config("one"), `{data: {a: theirs}}`)
	quiet(t, m, time.Second)
	w.eventually("one", "a", "theirs")
	w.merge(w.config("one"), `{data: {a: again}}`)
	quiet(t, m, time.Second)
	w.eventually("one", "a", "again")
	w.merge(w.config("one"), `{data: {a: null}}`)
	w.eventually("one", "a", "1")
	w.ready()
}

// TestOverrideRejected has overrides that cannot be read or evaluated, next to those
// that can.
func TestOverrideRejected(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.synthesize(
		configMap("good", "1", enov1.AnnotationOverrides, overrides(override{Path: "self.data.a", Value: "2"})),
		configMap("json", "1", enov1.AnnotationOverrides, "[{"),
		configMap("path", "1", enov1.AnnotationOverrides, overrides(override{Path: "self.data.a", Value: "2"}, override{Path: "data.a", Value: "2"})),
		configMap("cel", "1", enov1.AnnotationOverrides, overrides(override{Path: "self.data.a", Condition: "self.data.", Value: "2"})),
		configMap("passed", "1", enov1.AnnotationOverrides, overrides(override{Path: "self.data.a", Condition: "self.data.never == '1'", Value: "2"})),
		configMap("restless", "1", enov1.AnnotationOverrides, overrides(override{Path: "self.data.b", Condition: "!has(self.data.b)", Value: "2"})),
	)
	w.eventually("good", "a", "2")
	w.eventually("passed", "a", "1")
	for _, name := range []string{"json", "path", "cel"} {
		w.eventually(name, "a", "1") // none of its overrides is used
	}
	w.fails("ConfigMap", "restless", "take back what they do")
	w.merge(w.config("passed"), `{data: {c: "1"}}`)
	for reason, text := range map[string]string{
		"OverridePassedOver": "override 0 (self.data.a) is InvalidCondition: no such key: never",
		"SettingIgnored":     `annotation eno.azure.io/overrides[1].path: cannot use "data.a"`,
	} {
		cluster.Eventually(t, "an event reports which was passed over", func() error {
			list := &corev1.EventList{}
			must(t, w.c.List(t.Context(), list, client.InNamespace(w.ns)))
			for _, e := range list.Items {
				if e.Reason == reason && strings.Contains(e.Message, text) {
					return nil
				}
			}

			return fmt.Errorf("there are %d events, and none with %q", len(list.Items), text)
		})
	}
	if got := applies(t, m); got > 15 {
		t.Errorf("there were %v applies", got)
	}
	w.remove()
	w.deleted()
}
