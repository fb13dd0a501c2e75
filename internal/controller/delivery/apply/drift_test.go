package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// deaf is a client of a cluster that answers nothing. It counts how often it is asked.
type deaf struct {
	client.Client

	asked int
	err   error
}

func (d *deaf) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (d *deaf) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	d.asked++
	o.SetNamespace(key.Namespace)

	return d.err
}

// TestInspectBacksOff has an object that cannot be compared for an hour.
func TestInspectBacksOff(t *testing.T) {
	remote := &deaf{err: errors.New("no answer")}
	now := time.Unix(1_000_000, 0)
	d := idleWorker()
	d.Remote, d.Now, d.Drift = remote, func() time.Time { return now }, decide.DriftReport
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
	v := d.NewView(c, []enov1.ResourceSlice{{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"a":"b"}}`},
	}}}})
	it := v.Items[0].Unpacked()
	inspect := func() time.Duration {
		return d.inspect(t.Context(), queue.Key{Composition: v.Name, Object: it.Identity}, v, it, situation{}).again
	}
	for end := now.Add(time.Hour); now.Before(end); {
		again := inspect()
		if again <= 0 || again > model.MaxInspectPause {
			t.Fatalf("it is inspected again in %s", again)
		}
		now = now.Add(again)
	}
	if remote.asked > 20 {
		t.Errorf("the server was asked %d times in an hour", remote.asked)
	}
	// Changes of the object do not have it inspected earlier.
	asked := remote.asked
	now = now.Add(-time.Minute)
	inspect()
	if remote.asked != asked {
		t.Error("it is inspected before its time")
	}

	// It recovers: from then on it is inspected as often as before.
	remote.err = nil
	now = now.Add(model.MaxInspectPause)
	it.DisableUpdates = true // there is nothing to rehearse
	inspect()
	if got := it.Memory.Pause(); got != model.InspectPause {
		t.Errorf("after a success, the pause is %s", got)
	}
}
