package tutorial_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	delivery "github.com/arbor-control/arbor/internal/decide/delivery"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	compositions = 5
	kills        = 10
	// objects is how many a composition has at most.
	objects = 6
)

// rounds makes ConfigMaps that have the round of their input. Every third is left
// out, another one each time. It takes a moment, so that it can be interrupted.
const rounds = `round=$(sed 's/.*"round":"\([0-9]*\)".*/\1/')
sleep 0.1
printf '{"kind":"ResourceList","items":['
for i in 0 1 2 3 4 5; do
  if [ $(( (i + round) % 3 )) -ne 0 ]; then
    printf '%s{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%s","namespace":"%s","annotations":{"eno.azure.io/readiness-group":"%s"}},"data":{"round":"%s"}}' \
      "$comma" "$COMPOSITION_NAME" $i "$COMPOSITION_NAMESPACE" $((i % 2)) "$round"
    comma=,
  fi
done
printf ']}'`

// TestChaos has both parts in two managers, of which one leads, and kills either at
// any moment while inputs change all the time.
func TestChaos(t *testing.T) {
	began := time.Now()
	p := &pair{T: t, args: slices.Concat(both, []string{"--leader-elect", "--synthesis-timeout=3s"}), random: rand.New(rand.NewPCG(3, 5))}
	p.revive()
	must(t, p.managers[0].Await()) // the kinds are known then
	s := &stage{T: t, Client: server.Client(t, nil)}
	s.namespace = cluster.Namespace(t, s.Client)
	s.compose()

	last := s.changing(func() {
		for n := range kills {
			p.kill(n < kills-1)
		}
	})

	cluster.Eventually(t, "everything is as it should be", func() error {
		p.revive()

		return s.settled(last)
	})
	t.Logf("settled %s after the beginning, in round %d", time.Since(began).Round(time.Second), last)
	s.leave(p)
}

// A pair is two managers, of which one leads.
type pair struct {
	*testing.T

	args     []string
	managers [2]*cluster.Manager
	random   *rand.Rand
}

// revive starts those that have ended, as a kubelet would: a manager that cannot
// renew its lease ends by itself.
func (p *pair) revive() {
	p.Helper()
	for i, m := range p.managers {
		if m == nil || ended(m) {
			p.managers[i] = server.LaunchManager(p.T, p.args...)
		}
	}
}

func ended(m *cluster.Manager) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// kill ends one of the two at a random moment, and starts it again. The lease of one
// that was killed has to run out first; to have something to kill again before
// that, it is taken away. If the other one led, there are two leaders for a while.
func (p *pair) kill(expire bool) {
	p.Helper()
	<-time.After(time.Duration(p.random.IntN(4000)) * time.Millisecond)
	p.managers[p.random.IntN(len(p.managers))].Kill()
	if expire {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "arbor-system", Name: "arbor-manager"}}
		must(p, client.IgnoreNotFound(server.Client(p, nil).Delete(p.Context(), lease)))
	}
	p.revive()
}

func title(i int) string { return fmt.Sprintf("c%d", i) }

// compose makes the compositions, each with an input of its own.
func (s *stage) compose() {
	s.Helper()
	must(s, s.Create(s.Context(), &enov1.Synthesizer{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: enov1.SynthesizerSpec{
			Command: []string{"sh", "-c", rounds}, Refs: []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap"}}},
		},
	}))
	for i := range compositions {
		must(s, s.Create(s.Context(), s.input(i, 0)))
		must(s, s.Create(s.Context(), &enov1.Composition{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: title(i)},
			Spec: enov1.CompositionSpec{
				Synthesizer: enov1.SynthesizerRef{Name: s.namespace},
				Bindings:    []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: s.namespace, Name: "in-" + title(i)}}},
			},
		}))
	}
}

func (s *stage) input(i, round int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "in-" + title(i)}, Data: map[string]string{"round": strconv.Itoa(round)},
	}
}

// changing changes all inputs again and again while something is done, and returns
// the last round.
func (s *stage) changing(do func()) int {
	s.Helper()
	last, done, all := 0, make(chan struct{}), sync.WaitGroup{}
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(150 * time.Millisecond):
			}
			last++
			for i := range compositions {
				if err := s.Update(s.Context(), s.input(i, last)); err != nil {
					s.Errorf("cannot change an input: %v", err)
				}
			}
		}
	})
	stop := sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
	defer stop()
	do()
	stop()

	return last
}

// settled says what is not yet as the inputs want it.
func (s *stage) settled(round int) error {
	want, wanted := map[string]string{}, map[string]bool{}
	var all []enov1.Composition
	for i := range compositions {
		c, err := s.composition(title(i))
		if err != nil {
			return err
		}
		if st := c.Status; st.Simplified == nil || st.Simplified.Status != enov1.StatusReady || st.InFlightSynthesis != nil {
			return fmt.Errorf("%s is %+v, in flight is %+v", c.Name, st.Simplified, st.InFlightSynthesis)
		}
		all = append(all, *c)
		for k := range objects {
			if (k+round)%3 != 0 {
				want[fmt.Sprintf("%s-%d", c.Name, k)] = strconv.Itoa(round)
			}
		}
		if err := s.manifests(c.Status.CurrentSynthesis, wanted); err != nil {
			return err
		}
	}
	got, err := s.delivered(wanted)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("objects in round %d: -want, +got:\n%s", round, diff)
	}

	return s.tidy(all)
}

// manifests adds the names of what a synthesis wants.
func (s *stage) manifests(of *enov1.Synthesis, to map[string]bool) error {
	for _, ref := range of.ResourceSlices {
		slice := &enov1.ResourceSlice{}
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: ref.Name}, slice); err != nil {
			return err
		}
		for _, m := range slice.Spec.Resources {
			if !m.Deleted {
				to[identity.Read(m.Manifest).Name] = true
			}
		}
	}

	return nil
}

// delivered returns the objects that somebody has applied as eno, with their
// rounds. Each must be one that a current synthesis wants.
func (s *stage) delivered(wanted map[string]bool) (map[string]string, error) {
	list := &corev1.ConfigMapList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	got := map[string]string{}
	for _, o := range list.Items {
		if !delivery.IsOurs(o.ManagedFields, delivery.Manager) {
			continue
		}
		if !wanted[o.Name] {
			return nil, fmt.Errorf("nobody wants %s", o.Name)
		}
		got[o.Name] = o.Data["round"]
	}

	return got, nil
}

// tidy says which slices no synthesis needs.
func (s *stage) tidy(all []enov1.Composition) error {
	list := &enov1.ResourceSliceList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		slice := &list.Items[i]
		if !slices.ContainsFunc(all, func(c enov1.Composition) bool {
			return metav1.IsControlledBy(slice, &c) && len(decide.Garbage(&c.Status, []*enov1.ResourceSlice{slice})) == 0
		}) {
			return fmt.Errorf("slice %s belongs to nobody", slice.Name)
		}
	}

	return nil
}

// leave deletes everything, and sees it go.
func (s *stage) leave(p *pair) {
	s.Helper()
	for i := range compositions {
		must(s, s.Delete(s.Context(), &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: title(i)}}))
	}
	cluster.Eventually(s, "nothing is left", func() error {
		p.revive()
		left, all := &enov1.CompositionList{}, &enov1.ResourceSliceList{}
		if err := errors.Join(s.List(s.Context(), left, client.InNamespace(s.namespace)), s.List(s.Context(), all, client.InNamespace(s.namespace))); err != nil {
			return err
		}
		if len(left.Items)+len(all.Items) > 0 {
			return fmt.Errorf("%d compositions and %d slices are", len(left.Items), len(all.Items))
		}
		_, err := s.delivered(nil)

		return err
	})
	must(s, s.Delete(s.Context(), &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
}
