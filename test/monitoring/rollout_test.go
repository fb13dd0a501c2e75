package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// halted has a user roll back three compositions that a rollout has reached, which counts as
// failure and fires no other alert. It ends when the rollout is resumed.
func halted(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	prints := func(value string) []string {
		return []string{"sh", "-c", `cat > /dev/null; printf '{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"` + w.ns + `"},"data":{"a":"` + value + `"}}]}' "$ME"`}
	}
	s := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: "halted"}, Spec: enov1.SynthesizerSpec{Command: prints("1"), Image: "none"}}
	must(t, w.client.Create(t.Context(), s))
	names := []string{"halted-1", "halted-2", "halted-3"}
	for _, name := range names {
		w.create(t, &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: enov1.CompositionSpec{
			Synthesizer: enov1.SynthesizerRef{Name: "halted"}, SynthesisEnv: []enov1.EnvVar{{Name: "ME", Value: name}},
		}})
	}
	for _, name := range names {
		w.ready(t, name)
	}
	s.Spec.Command = prints("2")
	must(t, w.client.Update(t.Context(), s))
	annotate := func(o client.Object, name, value string) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)
		must(t, w.client.Patch(context.WithoutCancel(t.Context()), o, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for _, name := range names {
		c := &enov1.Composition{}
		cluster.Eventually(t, name+" has the new generation", func() error {
			if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, c); err != nil {
				return err
			}
			if now := c.Status.CurrentSynthesis; c.Status.PreviousSynthesis == nil || now.ObservedSynthesizerGeneration != s.Generation {
				return errors.New("it does not have it")
			}

			return nil
		})
		annotate(c, enov1.AnnotationRollback, c.Status.PreviousSynthesis.UUID)
	}

	return map[string]string{"job": plainJob, "synthesizer": "halted"}, func() {
		annotate(s, enov1.AnnotationResumeRollout, strconv.FormatInt(s.Generation, 10))
	}
}
