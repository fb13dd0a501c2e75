package eno_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// slice reads the only slice of the current synthesis of a composition.
func (e *env) slice(c *enov1.Composition) *enov1.ResourceSlice {
	e.Helper()
	s := &enov1.ResourceSlice{}
	must(e, e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: c.Status.CurrentSynthesis.ResourceSlices[0].Name}, s))

	return s
}

// erase deletes an object that has finalizers.
func (e *env) erase(o client.Object) {
	e.Helper()
	must(e, client.IgnoreNotFound(e.Patch(e.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
	must(e, client.IgnoreNotFound(e.Delete(e.Context(), o)))
	cluster.Eventually(e, o.GetName()+" is gone", func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it exists"), err)
		}

		return nil
	})
}

// manifest is a manifest in a slice.
func (e *env) manifest(text string) string {
	e.Helper()
	data, err := json.Marshal(e.object(text).Object)
	must(e, err)

	return string(data)
}

// resynthesized waits until a composition has a later synthesis, and is ready with it.
func (e *env) resynthesized(name, before string) *enov1.Composition {
	e.Helper()
	e.await(name, "is synthesized again", func(c *enov1.Composition) error {
		if c.Status.CurrentSynthesis == nil || c.Status.CurrentSynthesis.UUID == before {
			return errors.New("it has the synthesis of before")
		}

		return nil
	})

	return e.ready(name)
}

// TestForgedSlice replaces the slice of a composition by another one of the same name, which
// deletes what is there and delivers something else. It does not count, and is replaced.
func TestForgedSlice(t *testing.T) {
	cases := map[string]struct {
		reason string
		owners func(*enov1.Composition) []metav1.OwnerReference
		// content is whether the forged slice has the same spec as the original one.
		original bool
	}{
		"Unowned": {"It has no owner.", func(*enov1.Composition) []metav1.OwnerReference { return nil }, false},
		"Stranger": {"Its owner is another composition of that name.", func(c *enov1.Composition) []metav1.OwnerReference {
			return owned(c, "00000000-0000-4000-8000-000000000000")
		}, false},
		"Digest": {"Its owner is right, and its content is not what was synthesized.", func(c *enov1.Composition) []metav1.OwnerReference { return owned(c, c.UID) }, false},
		"Restored": {"Its content is right, and its owner does not exist any more.", func(c *enov1.Composition) []metav1.OwnerReference {
			return owned(c, "00000000-0000-4000-8000-000000000000")
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.compose("app", nil, configMap("one", "1"))
			c := e.ready("app")
			was := e.config("one").UID
			forged := e.slice(c)
			spec := forged.Spec
			manager.Kill()
			e.erase(forged)
			*forged = enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: forged.Name, OwnerReferences: tc.owners(c)}}
			forged.Spec = enov1.ResourceSliceSpec{SynthesisUUID: c.Status.CurrentSynthesis.UUID, Resources: []enov1.Manifest{
				{Manifest: e.manifest(configMap("one", "1")), Deleted: true}, {Manifest: e.manifest(configMap("forged", "1"))},
			}}
			if tc.original {
				forged.Spec = spec
			}
			must(t, e.Create(t.Context(), forged))
			must(t, startManager())
			after := e.resynthesized("app", c.Status.CurrentSynthesis.UUID)
			if e.config("forged") != nil {
				t.Errorf("%s Its manifests are delivered", tc.reason)
			}
			if one := e.config("one"); one == nil || one.UID != was {
				t.Errorf("%s ConfigMap one was deleted: %v", tc.reason, one)
			}
			if ref := after.Status.CurrentSynthesis.ResourceSlices[0]; ref.Name == forged.Name || !strings.HasPrefix(ref.Digest, "sha256:") {
				t.Errorf("%s The slice now is %+v", tc.reason, ref)
			}
			// Neither does the forged slice count when the composition is deleted.
			e.remove("app")
			e.absent("one")
		})
	}
}

// owned is a controller reference to a composition, with some UID.
func owned(c *enov1.Composition, uid types.UID) []metav1.OwnerReference {
	ref := metav1.NewControllerRef(c, enov1.GroupVersion.WithKind(enov1.CompositionKind))
	ref.UID = uid

	return []metav1.OwnerReference{*ref}
}

// TestForgedSliceIsReported has a composition that cannot be synthesized again: it reports which
// slice does not count, and why, and its objects stay.
func TestForgedSliceIsReported(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	c := e.ready("app")
	e.edit("app", annotated(enov1.AnnotationRollback, c.Status.CurrentSynthesis.UUID))
	forged := e.slice(c)
	manager.Kill()
	e.erase(forged)
	*forged = enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: forged.Name}, Spec: enov1.ResourceSliceSpec{
		Resources: []enov1.Manifest{{Manifest: e.manifest(configMap("one", "1")), Deleted: true}},
	}}
	must(t, e.Create(t.Context(), forged))
	must(t, startManager())
	e.await("app", "reports the slice", func(c *enov1.Composition) error {
		is := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionReconciled)
		if is == nil || is.Reason != "SliceLost" || !strings.Contains(is.Message, forged.Name) || !strings.Contains(is.Message, "no controller reference") {
			return fmt.Errorf("the condition is %+v", is)
		}

		return nil
	})
	e.event("Unreadable", forged.Name)
	e.exist("one")
}

// TestRestoredComposition restores a composition and its slices from a backup, so that the
// composition has another UID than the slices name. It is synthesized again, and its objects
// stay.
func TestRestoredComposition(t *testing.T) {
	for name, status := range map[string]bool{"WithStatus": true, "WithoutStatus": false} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
			c := e.ready("app")
			slice := e.slice(c)
			was := map[string]types.UID{"one": e.config("one").UID, "two": e.config("two").UID}
			manager.Kill()
			backup, kept := c.DeepCopy(), slice.DeepCopy()
			e.erase(slice)
			e.erase(c)
			backup.ObjectMeta = metav1.ObjectMeta{Namespace: e.namespace, Name: backup.Name, Finalizers: backup.Finalizers}
			saved := backup.Status
			must(t, e.Create(t.Context(), backup))
			if backup.UID == kept.OwnerReferences[0].UID {
				t.Fatal("the composition has the same UID as before")
			}
			if backup.Status = saved; status {
				must(t, e.Client.Status().Update(t.Context(), backup))
			}
			kept.ObjectMeta = metav1.ObjectMeta{Namespace: e.namespace, Name: kept.Name, Finalizers: kept.Finalizers, OwnerReferences: kept.OwnerReferences}
			must(t, e.Create(t.Context(), kept))
			must(t, startManager())
			e.resynthesized("app", saved.CurrentSynthesis.UUID)
			for name, uid := range was {
				if o := e.config(name); o == nil || o.UID != uid {
					t.Errorf("ConfigMap %s was deleted", name)
				}
			}
			// It can be deleted as a whole.
			e.remove("app")
			e.gone("app")
			e.absent("one", "two")
		})
	}
}

// TestSliceWithoutDigest has a slice as Eno writes it: it counts by its owner alone.
func TestSliceWithoutDigest(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	c := e.ready("app")
	manager.Kill()
	c.Status.CurrentSynthesis.ResourceSlices[0].Digest = ""
	must(t, e.Client.Status().Update(t.Context(), c))
	must(t, startManager())
	e.change("app", configMap("two", "1"))
	e.absent("one")
	after := e.ready("app")
	if after.Status.PreviousSynthesis == nil || after.Status.PreviousSynthesis.UUID != c.Status.CurrentSynthesis.UUID {
		t.Errorf("the composition was synthesized in between: %+v", after.Status)
	}
}

// TestSliceIsImmutable changes a slice in all the ways that the API server must reject, and in
// those that controllers need.
func TestSliceIsImmutable(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"))
	slice := e.slice(e.ready("app"))
	for name, patch := range map[string]string{
		"Changed": `[{"op":"replace","path":"/spec/resources/0/manifest","value":"{}"}]`,
		"Added":   `[{"op":"add","path":"/spec/resources/-","value":{"manifest":"{}"}}]`,
		"Deleted": `[{"op":"add","path":"/spec/resources/0/deleted","value":true}]`,
		"Emptied": `[{"op":"remove","path":"/spec/resources"}]`,
		"Removed": `[{"op":"remove","path":"/spec"}]`,
	} {
		if err := e.Patch(t.Context(), slice.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch))); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "immutable") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, e.Patch(t.Context(), slice, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`))))
	must(t, e.Client.Status().Patch(t.Context(), slice, client.RawPatch(types.MergePatchType, []byte(`{"status":{"resources":[{"reconciled":true}]}}`))))
}
