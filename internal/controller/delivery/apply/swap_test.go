package apply

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
)

// TestSwapUnderLoad replaces the view of a composition while workers of every earlier
// view still report findings about ownership. It is for the race detector; a map that
// two of them write ends the process without it as well.
func TestSwapUnderLoad(t *testing.T) {
	const objects, swaps, workers = 20, 200, 8
	d := idleWorker()
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	slices := make([]enov1.ResourceSlice, 1)
	for i := range objects {
		slices[0].Spec.Resources = append(slices[0].Spec.Resources, enov1.Manifest{
			Manifest: fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d%d","namespace":"n"}}`, i),
		})
	}
	name := client.ObjectKeyFromObject(c)
	load := func(n int) {
		c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: strconv.Itoa(n)}
		c.Status.Ownership = &enov1.OwnershipReport{Objects: []enov1.OwnershipObject{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "d0"}}}
		v := d.NewView(c, slices)
		v.InheritFrom(d.View(name))
		v.RestoreReport(c)
		d.swap(name, v)
	}
	load(0)
	var all sync.WaitGroup
	var stop atomic.Bool
	var findings atomic.Int64
	var earlier atomic.Pointer[model.Composition]
	earlier.Store(d.View(name))
	for w := range workers {
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				v := d.View(name)
				if w%2 == 0 {
					v = earlier.Load() // it still works on what it has begun with
				}
				for i := range objects {
					it := v.Items[(i+w)%objects].Unpacked()
					d.reportOwnership(v, it, finding{state: enov1.OwnershipSplit, message: fmt.Sprint(w, n)})
					d.Settle(v, it, enov1.ResourceState{Reconciled: true})
					findings.Add(1)
				}
				_ = v.OwnershipStatus()
			}
		})
	}
	for n := range swaps {
		earlier.Store(d.View(name))
		load(n + 1)
		for before := findings.Load(); findings.Load() < before+2*objects; {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	all.Wait()
	if got := d.View(name).OwnershipStatus().Split; got != objects {
		t.Errorf("%d of %d findings are left", got, objects)
	}
}
