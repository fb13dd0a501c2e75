package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// journal is a client of a cluster that rejects every object, and records their names.
type journal struct {
	rigid

	mu      sync.Mutex
	applied []string
}

func (j *journal) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if named, ok := o.(interface{ GetName() string }); ok {
		j.applied = append(j.applied, named.GetName())
	}

	return j.reject()
}

// place is how many objects were applied before one, -1 if that was not applied yet.
func (j *journal) place(name string) int {
	j.mu.Lock()
	defer j.mu.Unlock()

	return slices.Index(j.applied, name)
}

// TestFailuresDelayNoOthers has a composition with many objects that the API server
// rejects, and another one that comes later.
func TestFailuresDelayNoOthers(t *testing.T) {
	remote := &journal{rigid: rigid{managers: []string{decide.Manager}}}
	d := idleWorker()
	d.Remote, d.Status.Client, d.Migration, d.Queue = remote, remote, decide.MigrationOff, queue.New(1)
	queue := func(composition string, objects int) {
		c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: composition, UID: types.UID(composition)}}
		c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
		all := make([]enov1.ResourceSlice, 1)
		for i := range objects {
			all[0].Spec.Resources = append(all[0].Spec.Resources, enov1.Manifest{
				Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d","namespace":"n"}}`, composition, i),
			})
		}
		v := d.NewView(c, all)
		d.swap(v.Name, v)
		for _, it := range v.Start() {
			d.Queue.Add(queue.Key{Composition: v.Name, Object: it.Identity})
		}
	}
	queue("bad", 300)
	queue("good", 1)
	var worker sync.WaitGroup
	worker.Go(func() { d.Run(t.Context()) })
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return remote.place("good-0") >= 0, nil
	})
	d.Queue.ShutDown()
	worker.Wait()
	if err != nil {
		t.Fatal("the object of the other composition was not applied")
	}
	if n := remote.place("good-0"); n > 2 {
		t.Errorf("%d objects of the composition that fails were applied first", n)
	}
}
