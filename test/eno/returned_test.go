package eno_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// terminating waits until a ConfigMap is being deleted.
func (e *env) terminating(name string) *corev1.ConfigMap {
	e.Helper()
	var o *corev1.ConfigMap
	cluster.Eventually(e, "ConfigMap "+name+" is being deleted", func() error {
		if o = e.config(name); o == nil || o.DeletionTimestamp == nil {
			return errors.New("it is not")
		}

		return nil
	})

	return o
}

// TestReturnsWhileTerminating drops an object that has a finalizer, and delivers it again before it
// is gone.
func TestReturnsWhileTerminating(t *testing.T) {
	e := newEnv(t)
	held := strings.Replace(configMap("own", "1"), "metadata:\n", "metadata:\n  finalizers: [test.example.com/x]\n", 1)
	e.compose("app", nil, configMap("keep", "1"), held)
	e.ready("app")
	for i := range 3 {
		e.change("app", configMap("keep", strconv.Itoa(2*i)))
		was := e.terminating("own")
		// The last finalizer is removed by the apply itself.
		e.change("app", configMap("keep", strconv.Itoa(2*i+1)), configMap("own", "2"))
		e.another("own", was.UID)
		e.ready("app")
		e.change("app", configMap("keep", strconv.Itoa(2*i+1)), held)
		e.ready("app")
	}

	// Another writer's finalizer holds it.
	o := e.config("own")
	must(t, e.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"test.example.com/y"}]`)), client.FieldOwner("another")))
	e.change("app", configMap("keep", "x"))
	was := e.terminating("own")
	e.change("app", configMap("keep", "y"), configMap("own", "3"))
	e.status("app", enov1.StatusReconciling, "again when it is gone")
	must(t, e.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)), client.FieldOwner("another")))
	e.another("own", was.UID)
	e.ready("app")
}

// another waits until a ConfigMap has another UID, and is not being deleted.
func (e *env) another(name string, than types.UID) {
	e.Helper()
	cluster.Eventually(e, "ConfigMap "+name+" is another one", func() error {
		if o := e.config(name); o == nil || o.UID == than || o.DeletionTimestamp != nil {
			return fmt.Errorf("it is %v", o)
		}

		return nil
	})
}

// TestPatchOfSecretIsDiscreet has the API server reject a Patch of a Secret: its answer quotes the
// whole Secret.
func TestPatchOfSecretIsDiscreet(t *testing.T) {
	e := newEnv(t)
	const value, encoded, key = "CorrectHorseBatteryStaple", "Q29ycmVjdEhvcnNlQmF0dGVyeVN0YXBsZQ==", `-----BEGIN KEY-----\nMC4CAQAw\n`
	must(t, e.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "tgt"}, StringData: map[string]string{"password": value}}))
	patch := strings.Replace(patchOf("tgt", "1", `{op: add, path: /data/p, value: "hunter7!"}, {op: add, path: /data/k, value: "`+key+`"}`), "kind: ConfigMap", "kind: Secret", 1)
	e.compose("app", nil, patch)
	c := e.status("app", enov1.StatusReconciling, "cannot patch Secret")
	slices, events := &enov1.ResourceSliceList{}, &corev1.EventList{}
	must(t, e.List(t.Context(), slices, client.InNamespace(e.namespace)))
	must(t, e.List(t.Context(), events, client.InNamespace(e.namespace)))
	for i := range slices.Items {
		slices.Items[i].Spec = enov1.ResourceSliceSpec{} // that is what the user wrote
	}
	data, err := json.Marshal([]any{c, slices, events, manager.Output()})
	must(t, err)
	for _, secret := range []string{value, encoded, "hunter7!", "MC4CAQAw"} {
		if at := bytes.Index(data, []byte(secret)); at >= 0 {
			t.Errorf("%q can be read: %s", secret, data[max(0, at-300):min(len(data), at+100)])
		}
	}
}

// TestImpossibleNames has manifests with names that no object can have: they could not be deleted.
func TestImpossibleNames(t *testing.T) {
	e := newEnv(t)
	for i, name := range []string{"a/b", "a%b", ".."} {
		app := fmt.Sprintf("app-%d", i)
		e.compose(app, nil, configMap(fmt.Sprintf("%q", name), "1"))
		e.await(app, "reports the name", func(c *enov1.Composition) error {
			data, err := json.Marshal(c.Status)
			if err != nil || !strings.Contains(string(data), "metadata.name") {
				return fmt.Errorf("the status is %s (%w)", data, err)
			}

			return nil
		})
		e.remove(app)
		e.gone(app)
	}
}
