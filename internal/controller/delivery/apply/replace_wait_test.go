package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

// A terminating client is of a cluster with one object that has a finalizer.
type terminating struct {
	client.Client

	since   time.Time
	deletes int
}

func (c *terminating) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (c *terminating) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	o.SetUID("old")
	o.SetFinalizers([]string{"example.com/hold"})
	if !c.since.IsZero() {
		o.SetDeletionTimestamp(&metav1.Time{Time: c.since})
	}

	return nil
}

func (c *terminating) Create(context.Context, client.Object, ...client.CreateOption) error {
	return nil
}

func (c *terminating) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	c.deletes++

	return nil
}

// Status is for the slices, which are somewhere else.
func (c *terminating) Status() client.SubResourceWriter { return written{} }

type written struct{ client.SubResourceWriter }

func (written) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// TestReplacementIsProgress has an object deleted to be created again, whose finalizer is
// not removed.
func TestReplacementIsProgress(t *testing.T) {
	const text = "the object is being deleted, and is created again when it is gone; it waits for the finalizers example.com/hold"
	now := time.Unix(1_000_000, 0)
	remote := &terminating{}
	d := idleWorker()
	d.Remote, d.Now = remote, func() time.Time { return now }
	d.Status = status.NewWriter(remote, remote, d.Metrics)
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
	v := d.NewView(c, []enov1.ResourceSlice{{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
		{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"a":"b"}}`},
	}}}})
	d.swap(v.Name, v)
	it := v.Items[0].Unpacked()
	it.Memory.RestoreUID("old")
	attempt := func(seen bool) {
		t.Helper()
		k := queue.Key{Composition: v.Name, Object: it.Identity}
		out, err := d.act(t.Context(), k, v, it, decide.Action{Verb: decide.Wait, Reason: text}, situation{Situation: decide.Situation{Replacing: true}})
		if !seen { // the watch does not know that it is being deleted
			out, err = d.deleteToRecreate(t.Context(), k, v, it, errors.New("field is immutable"))
		}
		if err != nil {
			t.Fatal(err)
		}
		d.settleDelivered(v, it, out)
	}
	expect := func(what, message string, state objecthealth.State) {
		t.Helper()
		got := v.StateOf(it)
		if got.Reconciled || got.Replaced != types.UID("old") {
			t.Errorf("%s: the state is %+v", what, got)
		}
		if e := got.ReconciliationError; (e == nil) != (message == "") || e != nil && *e != message {
			t.Errorf("%s: the error is %v, want %q", what, e, message)
		}
		if s, complete := d.Health.Summarize(v.Name, v.HealthItems(), time.Hour); !complete || s.State() != state {
			t.Errorf("%s: it is %s, want %s", what, s.State(), state)
		}
	}

	attempt(false)
	expect("at first", "", objecthealth.Progressing)
	if remote.deletes != 1 {
		t.Fatalf("there were %d deletions", remote.deletes)
	}
	remote.since = now
	now = now.Add(replaceGrace - time.Second)
	attempt(true)
	expect("after a while", "", objecthealth.Progressing)
	now = now.Add(time.Second)
	attempt(true)
	expect("after too long", text, objecthealth.Degraded)

	it.Memory.Replacing = time.Time{}
	attempt(false)
	expect("after a restart", text, objecthealth.Degraded)
	if remote.deletes != 1 {
		t.Errorf("there were %d deletions", remote.deletes)
	}

	// It is gone and created; what happens to the new object is another matter.
	d.settleDelivered(v, it, outcome{})
	if got := v.StateOf(it); !got.Reconciled || got.ReconciliationError != nil || !it.Memory.Replacing.IsZero() {
		t.Errorf("after the replacement, the state is %+v", got)
	}
	d.settleDelivered(v, it, outcome{waits: "another client deletes it"})
	if e := v.StateOf(it).ReconciliationError; e == nil {
		t.Error("a deletion that is not ours is not reported")
	}
}
