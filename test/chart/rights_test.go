package chart_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// inputs and outputs are what the programs of the tests read and make.
var (
	inputs  = []string{"synthesis.inputs[0].apiGroups[0]=", "synthesis.inputs[0].resources[0]=configmaps", "synthesis.rolloutCooldown=0s", "synthesis.rolloutMaxFailures=1"}
	outputs = []string{"delivery.rules[1].apiGroups[0]=apps", "delivery.rules[1].resources[0]=deployments", "delivery.rules[1].verbs={get,list,watch,patch}", "delivery.rules[0].apiGroups[0]=", "delivery.rules[0].resources[0]=configmaps", "delivery.rules[0].verbs={get,list,watch,create,patch,delete}"}
)

// Each part by itself, and all together, with the flags and the permissions that the
// chart gives: everything works, nothing is rejected, and no permission is left over. That
// is asked of each part by itself: together, what one uses would hide what another
// does not.
func TestPermissions(t *testing.T) {
	cases := map[string]struct {
		values []string
		play   []func(*testing.T, *stage)
	}{
		"podgroups": {only("podgroups"), []func(*testing.T, *stage){playPodgroups}},
		"subnets":   {only("subnets"), []func(*testing.T, *stage){playSubnets}},
		"synthesis": {only("synthesis", inputs...), []func(*testing.T, *stage){playSynthesis}},
		"delivery":  {only("delivery", outputs...), []func(*testing.T, *stage){playDelivery}},
		"all": {all(slices.Concat(inputs, outputs)...), []func(*testing.T, *stage){
			playPodgroups, playSubnets, playSynthesis, playTogether,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := server.Client(t, nil)
			purge(t, c)
			r := install(t, c, "arbor-"+name, append(tc.values,
				"metrics.readers[0].kind=ServiceAccount", "metrics.readers[0].namespace=default", "metrics.readers[0].name=reader")...)
			account := r.name + "-manager"
			have := granted(t, c, r.name, account)

			// An API server that cannot stream lists is asked for them.
			t.Setenv("KUBE_FEATURE_WatchListClient", "false")
			s := &stage{Client: c, release: r, namespace: cluster.Namespace(t, c)}
			s.manager = r.start(t)
			playMetrics(t, s)
			for _, play := range tc.play {
				play(t, s)
			}
			if slices.Contains(r.args, "--webhook-configuration="+r.name) {
				playCertificates(t, s)
			}

			cluster.Eventually(t, "every right is used", func() error {
				given, refused := asked(t, "system:serviceaccount:"+r.name+":"+account)
				for asked := range refused {
					t.Errorf("used and not granted: %s", asked)
				}
				if t.Failed() {
					return nil
				}
				if left := unused(have, given); len(left) > 0 && len(tc.play) == 1 {
					return fmt.Errorf("granted and not used:\n%s", strings.Join(left, "\n"))
				}

				return nil
			})
		})
	}
}

// A stage is where the parts are played: a namespace, next to the release.
type stage struct {
	client.Client

	release   *release
	manager   *cluster.Manager
	namespace string
}

func (s *stage) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *stage) create(t *testing.T, o client.Object) {
	t.Helper()
	must(t, s.Create(t.Context(), o))
}

// merge changes an object.
func (s *stage) merge(t *testing.T, o client.Object, patch string) {
	t.Helper()
	must(t, s.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// await waits for a condition of an object that is read again.
func (s *stage) await(t *testing.T, what string, o client.Object, condition func() bool) {
	t.Helper()
	cluster.Eventually(t, what, func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if !condition() {
			return fmt.Errorf("%T %s: %+v", o, o.GetName(), o)
		}

		return nil
	})
}

func (s *stage) gone(t *testing.T, o client.Object) {
	t.Helper()
	must(t, client.IgnoreNotFound(s.Delete(t.Context(), o)))
	cluster.Eventually(t, o.GetName()+" is gone", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("it is still there: %+v", o), err)
		}

		return nil
	})
}

func playMetrics(t *testing.T, s *stage) {
	t.Helper()
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "reader"}}
	must(t, client.IgnoreAlreadyExists(s.Create(t.Context(), reader)))
	token := tokenOf(t, reader)
	cluster.Eventually(t, "a reader reads the metrics", func() error { return scrape(t, s.release.metrics, token) })
	if err := scrape(t, s.release.metrics, s.release.token); err == nil {
		t.Error("a user who may not read the metrics reads them")
	}
}

// playCertificates damages the Secret, which is then created again; and what the
// manager registers stays Helm's to remove.
func playCertificates(t *testing.T, s *stage) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.release.name, Name: "arbor-webhook-ca"}}
	s.merge(t, secret, `{"data": {"ca.crt": "bm9uZQ=="}}`)
	s.await(t, "the Secret is created again", secret, func() bool { return string(secret.Data["ca.crt"]) != "none" })
	must(t, s.Delete(t.Context(), secret))
	s.await(t, "the Secret is made once more", secret, func() bool { return len(secret.Data) > 0 })
}

func playPodgroups(t *testing.T, s *stage) {
	t.Helper()
	bad := func(name string) *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{ObjectMeta: s.meta(name), Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "Refused"}}}}
	}
	cluster.Eventually(t, "a bad group is rejected", func() error {
		err := s.Create(t.Context(), bad("refused"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), `admission webhook "podgroups.admission.arbor" denied the request`) {
			return fmt.Errorf("it was answered with %w", err)
		}

		return nil
	})
	good := bad("good")
	good.Spec.SubGroups[0].Name = "good"
	good.Spec.PriorityClassName = "system-node-critical" // the webhook reviews who may use it, and gets it
	s.create(t, good)
	s.await(t, "a good group is valid", good, func() bool { return valid(good, metav1.ConditionTrue) })

	// One that is older than the rule.
	s.manager.Stop()
	s.merge(t, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.release.name}}, `{"webhooks": null}`)
	stored := bad("stored")
	cluster.Eventually(t, "no webhook is called", func() error { return s.Create(t.Context(), stored) })
	s.manager = s.release.start(t)
	s.await(t, "a stored group is not valid", stored, func() bool { return valid(stored, metav1.ConditionFalse) })
}

func valid(g *v2alpha2.PodGroup, is metav1.ConditionStatus) bool {
	return slices.ContainsFunc(g.Status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == "Valid" && c.Status == is })
}

func playSubnets(t *testing.T, s *stage) {
	t.Helper()
	pool := &v1alpha1.SubnetPool{ObjectMeta: s.meta("pool"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}}
	s.create(t, pool)
	cluster.Eventually(t, "an overlapping pool is rejected", func() error {
		err := s.Create(t.Context(), &v1alpha1.SubnetPool{ObjectMeta: s.meta("overlaps"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/17"}}, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), `admission webhook "subnetpools.admission.arbor" denied the request`) {
			return fmt.Errorf("it was answered with %w", err)
		}

		return nil
	})

	// A block of that name is in another pool: the API server is asked what it is.
	other := &v1alpha1.SubnetPool{ObjectMeta: s.meta("other"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.1.0.0/16"}}
	s.create(t, other)
	size := int32(24)
	claim := func(name string) *v1alpha1.SubnetClaim {
		c := &v1alpha1.SubnetClaim{ObjectMeta: s.meta(name)}
		c.Spec.PoolRef, c.Spec.ClusterID, c.Spec.BlockSize = "pool", name, &size

		return c
	}
	taken := &v1alpha1.Subnet{ObjectMeta: s.meta("pool-10-0-0-0-24"), Spec: v1alpha1.SubnetSpec{PoolRef: "other", CIDR: "10.1.7.0/24", ClusterID: "by-hand"}}
	s.create(t, taken)
	first := claim("first")
	s.create(t, first)
	user := "system:serviceaccount:" + s.release.name + ":" + s.release.name + "-manager"
	cluster.Eventually(t, "the manager checks the block of that name", func() error {
		given, _ := asked(t, user)
		if !given[right{s.namespace, "plexaubnet.io", "subnets", taken.Name, "get"}] {
			return errors.New("it has not")
		}

		return nil
	})
	must(t, s.Delete(t.Context(), taken)) // the claim may take that name at once
	s.await(t, "a claim is bound", first, func() bool { return first.Status.Phase == v1alpha1.ClaimBound })

	// One block too many for a claim that has one.
	extra := &v1alpha1.Subnet{ObjectMeta: s.meta("extra"), Spec: v1alpha1.SubnetSpec{PoolRef: "pool", CIDR: "10.0.9.0/24", ClusterID: "first", ClaimRef: &v1alpha1.ClaimReference{Name: first.Name, UID: first.UID}}}
	s.create(t, extra)
	cluster.Eventually(t, "the block that is too many is gone", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(extra), extra); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}

		return nil
	})

	// A block whose SubnetPoolClaim is gone: the API server is asked whether it is.
	abandoned := claim("abandoned")
	abandoned.Finalizers = []string{v1alpha1.Finalizer}
	abandoned.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.SubnetPoolClaimKind, Name: "gone", UID: "gone", Controller: new(true)}}
	s.create(t, abandoned)
	s.gone(t, abandoned)

	// A pool from a pool; once with each kind of news late.
	for _, kind := range []string{"subnetclaims", "subnetpools"} {
		playPoolClaim(t, s, user, kind)
	}
}

func playPoolClaim(t *testing.T, s *stage, user, late string) {
	t.Helper()
	pc := &v1alpha1.SubnetPoolClaim{ObjectMeta: s.meta("late-" + late), Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: "pool", DesiredBlockSize: 22}}
	release := s.release.late.hold(late)
	defer release()
	s.create(t, pc)
	cluster.Eventually(t, "the manager asks for what its cache does not have", func() error {
		_ = s.Patch(t.Context(), pc.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"woken":"`+pc.ResourceVersion+`"}}}`)))
		_ = s.Get(t.Context(), client.ObjectKeyFromObject(pc), pc)
		given, _ := asked(t, user)
		if !given[right{s.namespace, "plexaubnet.io", late, pc.Name, "get"}] {
			return errors.New("it has not")
		}

		return nil
	})
	release()
	s.await(t, "a claim of a pool is bound", pc, func() bool { return pc.Status.Phase == v1alpha1.ClaimBound })

	block := &v1alpha1.SubnetClaim{ObjectMeta: s.meta(pc.Name)}
	s.merge(t, block, `{"metadata": {"finalizers": null}}`)
	s.merge(t, pc, `{"metadata": {"annotations": {"woken": "again"}}}`)
	s.await(t, "the block is guarded again", block, func() bool { return len(block.Finalizers) > 0 })
	s.gone(t, pc)
}

// echo makes a ConfigMap of the color of its input.
const echo = `color=$(sed 's/.*"color":"\([a-z0-9]*\)".*/\1/')
[ "$color" != broken ] || exit 1
printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"color":"%s"}}]}' "$COMPOSITION_NAME" "$COMPOSITION_NAMESPACE" "$color"`

func (s *stage) synthesizer(t *testing.T, name string) {
	t.Helper()
	s.create(t, &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + name}, Spec: enov1.SynthesizerSpec{
		Image: "none", Command: []string{"sh", "-c", echo},
		Refs: []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap"}}},
	}})
}

func (s *stage) variation(name string) enov1.Variation {
	return enov1.Variation{Synthesizer: enov1.SynthesizerRef{Name: s.namespace + name}, Labels: map[string]string{"is": "first"}}
}

func playSynthesis(t *testing.T, s *stage) {
	t.Helper()
	s.synthesizer(t, "-a")
	s.synthesizer(t, "-b")
	in := &corev1.ConfigMap{ObjectMeta: s.meta("in"), Data: map[string]string{"color": "red"}}
	s.create(t, in)
	symphony := &enov1.Symphony{ObjectMeta: s.meta("song"), Spec: enov1.SymphonySpec{
		Bindings:   []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: s.namespace, Name: "in"}}},
		Variations: []enov1.Variation{s.variation("-a"), s.variation("-b")},
	}}
	s.create(t, symphony)
	first := s.synthesized(t, 2)[0]

	// The input changes, once for the worse, the lists of variations too, and a
	// slice is lost.
	s.merge(t, in, `{"data": {"color": "broken"}}`)
	s.await(t, "a synthesis fails", &first, func() bool {
		return first.Status.InFlightSynthesis != nil && first.Status.InFlightSynthesis.Attempts > 2
	})
	s.merge(t, in, `{"data": {"color": "blue"}}`)
	before := first.Status.CurrentSynthesis.UUID
	s.await(t, "the input is followed", &first, func() bool {
		return first.Status.CurrentSynthesis.UUID != before && first.Status.InFlightSynthesis == nil
	})
	s.lose(t, &first)
	s.merge(t, symphony, `{"metadata": {"annotations": {"eno.azure.io/deletion-strategy": "orphan"}}}`)
	// A patch, because the manager writes its status during that time.
	second := s.variation("-a")
	second.Labels["is"] = "second"
	variations, err := json.Marshal([]enov1.Variation{second})
	must(t, err)
	s.merge(t, symphony, fmt.Sprintf(`{"spec": {"variations": %s}}`, variations))
	cluster.Eventually(t, "one variation is gone, and the other has its label", func() error {
		list := &enov1.CompositionList{}
		must(t, s.List(t.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels{"is": "second"}))
		rest := &enov1.CompositionList{}
		must(t, s.List(t.Context(), rest, client.InNamespace(s.namespace)))
		for i := range rest.Items {
			if rest.Items[i].DeletionTimestamp != nil {
				// If no client delivers here, no client reports that its objects are gone; else it
				// may be gone itself by now.
				orphan := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"eno.azure.io/deletion-strategy": "orphan"}}}`))
				must(t, client.IgnoreNotFound(s.Patch(t.Context(), &rest.Items[i], orphan)))
			}
		}
		if len(list.Items) != 1 || len(rest.Items) != 1 {
			return fmt.Errorf("there are %d, and %d with the label", len(rest.Items), len(list.Items))
		}

		return nil
	})
	s.halt(t, "-a")
	s.gone(t, symphony)
}

// halt has a rollout fail, and go on with a generation that works.
func (s *stage) halt(t *testing.T, name string) {
	t.Helper()
	synth := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + name}}
	s.merge(t, synth, `{"spec": {"command": ["false"]}}`)
	halted := func() bool { return meta.IsStatusConditionTrue(synth.Status.Conditions, enov1.ConditionRolloutHalted) }
	s.await(t, "the rollout is halted", synth, halted)
	command, err := json.Marshal([]string{"sh", "-c", echo})
	must(t, err)
	s.merge(t, synth, fmt.Sprintf(`{"spec": {"command": %s}}`, command))
	s.await(t, "the next generation is rolled out", synth, func() bool { return !halted() })
}

// lose deletes the slice of a composition. Delivery restores it if it has read it; otherwise the
// composition is synthesized again.
func (s *stage) lose(t *testing.T, c *enov1.Composition) {
	t.Helper()
	lost := &enov1.ResourceSlice{ObjectMeta: s.meta(c.Status.CurrentSynthesis.ResourceSlices[0].Name)}
	s.merge(t, lost, `{"metadata": {"finalizers": null}}`)
	must(t, client.IgnoreNotFound(s.Delete(t.Context(), lost)))
	cluster.Eventually(t, "the slice that was lost is replaced", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		now := &enov1.ResourceSlice{ObjectMeta: s.meta(c.Status.CurrentSynthesis.ResourceSlices[0].Name)}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		if now.UID == lost.UID {
			return fmt.Errorf("slice %s is the one that was deleted", now.Name)
		}

		return nil
	})
	if slices.ContainsFunc(s.release.args, func(a string) bool { return strings.HasPrefix(a, "--controllers=") && strings.Contains(a, "delivery") }) {
		s.await(t, "what was lost is delivered", c, func() bool { return c.Status.CurrentSynthesis.Reconciled != nil })
	}
}

// synthesized waits for compositions.
func (s *stage) synthesized(t *testing.T, n int) []enov1.Composition {
	t.Helper()
	list := &enov1.CompositionList{}
	cluster.Eventually(t, "compositions are synthesized", func() error {
		must(t, s.List(t.Context(), list, client.InNamespace(s.namespace)))
		done := 0
		for _, c := range list.Items {
			if c.Status.CurrentSynthesis != nil && c.Status.CurrentSynthesis.Synthesized != nil {
				done++
			}
		}
		if done != n {
			return fmt.Errorf("%d of %d are: %+v", done, n, list.Items)
		}

		return nil
	})

	return list.Items
}

// playDelivery writes a synthesis by hand.
func playDelivery(t *testing.T, s *stage) {
	t.Helper()
	c := &enov1.Composition{ObjectMeta: s.meta("by-hand")}
	c.Finalizers = []string{enov1.Finalizer}
	s.create(t, c)
	manifest := func(name, color string, deleted bool) enov1.Manifest {
		return enov1.Manifest{Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q},"data":{"color":%q}}`, name, s.namespace, color), Deleted: deleted}
	}
	s.synthesis(t, c, "one", manifest("stays", "red", false), manifest("goes", "red", false), manifest("Not A Name", "red", false))
	made := &corev1.ConfigMap{ObjectMeta: s.meta("stays")}
	s.await(t, "it is delivered", made, func() bool { return made.Data["color"] == "red" })
	s.await(t, "the other too", &corev1.ConfigMap{ObjectMeta: s.meta("goes")}, func() bool { return true })
	cluster.Eventually(t, "an event reports what cannot be delivered", func() error {
		list := &corev1.EventList{}
		must(t, s.List(t.Context(), list, client.InNamespace(s.namespace)))
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "NotDelivered" }) {
			return errors.New("none does")
		}

		return nil
	})
	s.merge(t, made, `{"data": {"color": "green"}}`)
	s.await(t, "drift is corrected", made, func() bool { return made.Data["color"] == "red" })
	s.synthesis(t, c, "two", manifest("stays", "blue", false), manifest("goes", "red", true))
	s.await(t, "a change is delivered", made, func() bool { return made.Data["color"] == "blue" })
	cluster.Eventually(t, "a tombstone is obeyed", func() error {
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "goes"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}

		return nil
	})
	s.playOwnership(t, c)
	s.playLostSlice(t, c)
	s.merge(t, c, `{"metadata": {"finalizers": null}}`)
	must(t, client.IgnoreNotFound(s.Delete(t.Context(), c)))
}

// playOwnership has something go that another client holds.
func (s *stage) playOwnership(t *testing.T, c *enov1.Composition) {
	t.Helper()
	workload := func(first string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":%q},"spec":{"selector":{"matchLabels":{"app":"web"}},
			"template":{"metadata":{"labels":{"app":"web"}},"spec":{%s"containers":[{"name":"web","image":"web:1"}]}}}}`, s.namespace, first)
	}
	o := objects(t, workload(`"initContainers":[{"name":"first","image":"first:1","command":["sh"],"imagePullPolicy":"Always"}],`))[0]
	must(t, s.Create(t.Context(), o, client.FieldOwner("somebody")))
	s.synthesis(t, c, "three", enov1.Manifest{Manifest: workload(`"initContainers":[{"name":"first","image":"first:2"}],`)})
	s.reconciled(t, c)
	s.synthesis(t, c, "four", enov1.Manifest{Manifest: workload("")})
	s.await(t, "ownership is reported", c, func() bool { return c.Status.Ownership != nil })
	s.reconciled(t, c)
}

// playLostSlice deletes a slice, which has no finalizer, behind the back of delivery.
func (s *stage) playLostSlice(t *testing.T, c *enov1.Composition) {
	t.Helper()
	slice := &enov1.ResourceSlice{ObjectMeta: s.meta(c.Status.CurrentSynthesis.ResourceSlices[0].Name)}
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(slice), slice))
	lost := slice.UID
	must(t, s.Delete(t.Context(), slice))
	cluster.Eventually(t, "the slice is restored", func() error {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(slice), slice); err != nil || slice.UID == lost {
			return errors.Join(errors.New("it is not"), err)
		}

		return nil
	})
	s.merge(t, slice, `{"metadata": {"finalizers": null}}`) // no synthesis runs that would remove it
}

// reconciled waits until the last slice of a composition is.
func (s *stage) reconciled(t *testing.T, c *enov1.Composition) {
	t.Helper()
	slice := &enov1.ResourceSlice{ObjectMeta: s.meta(c.Status.CurrentSynthesis.ResourceSlices[0].Name)}
	s.await(t, "it is delivered", slice, func() bool {
		return len(slice.Status.Resources) > 0 && slice.Status.Resources[0].Reconciled
	})
}

func (s *stage) synthesis(t *testing.T, c *enov1.Composition, uuid string, manifests ...enov1.Manifest) {
	t.Helper()
	slice := &enov1.ResourceSlice{ObjectMeta: s.meta("by-hand-" + uuid), Spec: enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: manifests}}
	slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))}
	s.create(t, slice)
	cluster.Eventually(t, "the synthesis is written", func() error {
		must(t, s.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		now := metav1.Now()
		c.Status.PreviousSynthesis = c.Status.CurrentSynthesis
		c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: uuid, Synthesized: &now, ResourceSlices: []*enov1.ResourceSliceRef{{Name: slice.Name}}}

		return s.Status().Update(t.Context(), c)
	})
}

// playTogether goes all the way, from an input to an object, and back.
func playTogether(t *testing.T, s *stage) {
	t.Helper()
	s.synthesizer(t, "-together")
	in := &corev1.ConfigMap{ObjectMeta: s.meta("together-in"), Data: map[string]string{"color": "red"}}
	s.create(t, in)
	c := &enov1.Composition{ObjectMeta: s.meta("together"), Spec: enov1.CompositionSpec{
		Synthesizer: enov1.SynthesizerRef{Name: s.namespace + "-together"},
		Bindings:    []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: s.namespace, Name: in.Name}}},
	}}
	s.create(t, c)
	out := &corev1.ConfigMap{ObjectMeta: s.meta("together")}
	s.await(t, "it is delivered", out, func() bool { return out.Data["color"] == "red" })
	s.merge(t, in, `{"data": {"color": "blue"}}`)
	s.await(t, "a change is delivered", out, func() bool { return out.Data["color"] == "blue" })
	s.gone(t, c)
	s.gone(t, out)
}
