package upgrade_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// A tenant is a namespace with objects of all parts.
type tenant struct {
	*testing.T
	client.Client

	ns string
}

// account is the ServiceAccount that delivers in the namespace of a tenant, with scope namespace.
const account = "deployer"

// newTenant creates a namespace with an account that may deliver ConfigMaps, and that the manager may
// impersonate.
func newTenant(t *testing.T, c client.Client) *tenant {
	t.Helper()
	s := &tenant{T: t, Client: c, ns: cluster.Namespace(t, c)}
	s.create(&corev1.ServiceAccount{ObjectMeta: s.meta(account)})
	s.create(&rbacv1.Role{ObjectMeta: s.meta(account), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}}}})
	bind := func(binding, kind, role, namespace, subject string) {
		s.create(&rbacv1.RoleBinding{
			ObjectMeta: s.meta(binding), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: subject}},
		})
	}
	bind(account, "Role", account, s.ns, account)
	bind("impersonator", "ClusterRole", name+"-impersonator", namespace, name+"-manager")

	return s
}

func (s *tenant) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}

func (s *tenant) create(o client.Object) {
	s.Helper()
	must(s, s.Create(s.Context(), o))
}

// await reads an object until it is as it should be.
func (s *tenant) await(o client.Object, is func() bool) {
	s.Helper()
	cluster.Eventually(s, fmt.Sprintf("%T %s is as it should be", o, o.GetName()), func() error {
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if !is() {
			return fmt.Errorf("it is %+v", o)
		}

		return nil
	})
}

// work has every part do something, and waits until it is done. What a version leaves
// of subnets whose program is not at hand is stored as that program wrote it.
func (s *tenant) work(v version) {
	s.Helper()
	s.groups()
	if v.definitions == nil {
		s.subnets()
	} else {
		s.storedSubnets()
	}
	s.compositions()
}

func (s *tenant) groups() {
	s.Helper()
	group := func(name, sub string) *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{ObjectMeta: s.meta(name), Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: sub}}}}
	}
	cluster.Eventually(s, "a bad group is rejected", func() error {
		err := s.Create(s.Context(), group("bad", "Bad"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), `admission webhook "podgroups.admission.arbor" denied the request`) {
			return errors.Join(errors.New("it is not"), err)
		}

		return nil
	})
	good := group("good", "good")
	s.create(good)
	s.await(good, func() bool {
		return slices.ContainsFunc(good.Status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == "Valid" && c.Status == metav1.ConditionTrue })
	})
}

// subnets takes blocks of a pool, a pool of it, and a block of that.
func (s *tenant) subnets() {
	s.Helper()
	pool := &v1alpha1.SubnetPool{ObjectMeta: s.meta("pool"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}}
	s.create(pool)
	child := &v1alpha1.SubnetPoolClaim{ObjectMeta: s.meta("child"), Spec: v1alpha1.SubnetPoolClaimSpec{ParentPoolRef: pool.Name, DesiredBlockSize: 22}}
	s.create(child)
	s.await(child, func() bool { return child.Status.Phase == v1alpha1.ClaimBound })
	for i, from := range []string{pool.Name, pool.Name, child.Status.BoundPoolName} {
		c := &v1alpha1.SubnetClaim{ObjectMeta: s.meta(fmt.Sprintf("block-%d", i))}
		c.Spec.PoolRef, c.Spec.ClusterID, c.Spec.BlockSize = from, c.Name, new(int32(24))
		s.create(c)
		s.await(c, func() bool { return c.Status.Phase == v1alpha1.ClaimBound })
	}
	for name, count := range map[string]int64{pool.Name: 2, child.Status.BoundPoolName: 1} {
		p := &v1alpha1.SubnetPool{ObjectMeta: s.meta(name)}
		s.await(p, func() bool { return p.Status.AllocatedCount >= count })
	}
}

// paint makes a ConfigMap of the color of its input.
const paint = `color=$(sed 's/.*"color":"\([a-z0-9]*\)".*/\1/')
printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"color":"%s"}}]}' "$COMPOSITION_NAME" "$COMPOSITION_NAMESPACE" "$color"`

// compositions has a composition and a symphony delivered, and a change of their input.
func (s *tenant) compositions() {
	s.Helper()
	s.create(&enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.ns}, Spec: enov1.SynthesizerSpec{
		Image: "none", Command: []string{"sh", "-c", paint},
		Refs: []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap"}}},
	}})
	in := &corev1.ConfigMap{ObjectMeta: s.meta("in"), Data: map[string]string{"color": "red"}}
	s.create(in)
	bindings, synthesizer := []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: s.ns, Name: "in"}}}, enov1.SynthesizerRef{Name: s.ns}
	c := &enov1.Composition{ObjectMeta: s.meta("web"), Spec: enov1.CompositionSpec{Synthesizer: synthesizer, Bindings: bindings}}
	s.create(c)
	s.create(&enov1.Symphony{ObjectMeta: s.meta("song"), Spec: enov1.SymphonySpec{Bindings: bindings, Variations: []enov1.Variation{{Synthesizer: synthesizer}}}})
	for _, color := range []string{"red", "blue"} {
		in.Data["color"] = color
		must(s, s.Update(s.Context(), in))
		cluster.Eventually(s, "everything is "+color, func() error { return s.painted(color) })
	}
}

// painted reports whether both compositions are ready, and what they made has a color.
func (s *tenant) painted(color string) error {
	list := &enov1.CompositionList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns)); err != nil {
		return err
	}
	if len(list.Items) != 2 {
		return fmt.Errorf("there are %d compositions", len(list.Items))
	}
	for _, c := range list.Items {
		out := &corev1.ConfigMap{}
		if err := s.Get(s.Context(), client.ObjectKeyFromObject(&c), out); err != nil {
			return err
		}
		if st := c.Status; st.Simplified == nil || st.Simplified.Status != enov1.StatusReady || st.InFlightSynthesis != nil || out.Data["color"] != color {
			return fmt.Errorf("%s is %+v, and made %v", c.Name, c.Status.Simplified, out.Data)
		}
	}
	song := &enov1.Symphony{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: "song"}, song); err != nil {
		return err
	}
	if song.Status.Ready == nil {
		return fmt.Errorf("the symphony is %+v", song.Status)
	}

	return nil
}

// kinds are those that are checked: Arbor's, and the one that is delivered.
var kinds = []runtimeschema.GroupVersionKind{
	v2alpha2.GroupVersion.WithKind("PodGroup"),
	v1alpha1.GroupVersion.WithKind("SubnetPool"), v1alpha1.GroupVersion.WithKind("SubnetClaim"),
	v1alpha1.GroupVersion.WithKind("SubnetPoolClaim"), v1alpha1.GroupVersion.WithKind("Subnet"),
	enov1.GroupVersion.WithKind("Composition"), enov1.GroupVersion.WithKind("ResourceSlice"), enov1.GroupVersion.WithKind("Symphony"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
}

// A snapshot is all objects of a tenant, by kind and name.
type snapshot map[string]*unstructured.Unstructured

func (s *tenant) look() (snapshot, error) {
	all := snapshot{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := s.List(s.Context(), list, client.InNamespace(s.ns)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			all[kind.Kind+" "+list.Items[i].GetName()] = &list.Items[i]
		}
	}

	return all, nil
}

// steady looks until nothing has been written for a while.
func (s *tenant) steady() snapshot {
	s.Helper()
	last, since := snapshot{}, time.Now()
	cluster.Eventually(s, "nothing is written any more", func() error {
		now, err := s.look()
		if err != nil {
			return err
		}
		if !maps.EqualFunc(last, now, func(a, b *unstructured.Unstructured) bool { return a.GetResourceVersion() == b.GetResourceVersion() }) {
			last, since = now, time.Now()
		}
		if time.Since(since) < quiet {
			return errors.New("something was written a moment ago")
		}

		return nil
	})

	return last
}

// compare reports what is no longer as it was, and returns how many objects were written to.
func compare(t *testing.T, step string, before, after snapshot) int {
	t.Helper()
	written := 0
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], after[name]
		switch {
		case is == nil:
			t.Errorf("%s: %s is gone", step, name)

			continue
		case is.GetUID() != was.GetUID():
			t.Errorf("%s: %s was created again", step, name)
		case is.GetGeneration() != was.GetGeneration():
			t.Errorf("%s: %s has generation %d, and had %d", step, name, is.GetGeneration(), was.GetGeneration())
		}
		if is.GetResourceVersion() != was.GetResourceVersion() {
			written++
		}
		for _, path := range differences("", content(was), content(is)) {
			t.Errorf("%s: %s: %s is not as it was", step, name, path)
		}
	}
	for name := range after {
		if before[name] == nil {
			t.Errorf("%s: %s was not there before", step, name)
		}
	}

	return written
}

// content is an object without what every write changes.
func content(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	if c.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
		protected(c)
	}

	return c.Object
}

// differences are the paths of what is not as it was. A newer release may report more in a status,
// so what only the later one has is none, there.
func differences(path string, was, is any) []string {
	a, ok := was.(map[string]any)
	b, both := is.(map[string]any)
	if !ok || !both {
		if reflect.DeepEqual(was, is) {
			return nil
		}

		return []string{path}
	}
	var found []string
	for key, value := range a {
		found = append(found, differences(path+"."+key, value, b[key])...)
	}
	for key := range b {
		if _, ok := a[key]; !ok && !strings.HasPrefix(path, ".status") {
			found = append(found, path+"."+key)
		}
	}

	return found
}
