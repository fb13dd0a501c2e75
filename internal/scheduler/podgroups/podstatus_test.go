package podgroups

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestDeletePodOfTheSameName has an API server where a pod was deleted and created again: it answers as
// kube-apiserver does.
func TestDeletePodOfTheSameName(t *testing.T) {
	const now = types.UID("second")
	deleted, marked := false, false
	answer := func(w http.ResponseWriter, code int, o any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(o); err != nil {
			t.Error(err)
		}
	}
	reject := func(w http.ResponseWriter, err *apierrors.StatusError) {
		err.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer(w, int(err.ErrStatus.Code), err.ErrStatus)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var of struct {
			Metadata      metav1.ObjectMeta     `json:"metadata"`
			Preconditions *metav1.Preconditions `json:"preconditions"`
		}
		if err := json.Unmarshal(body, &of); len(body) > 0 && err != nil {
			t.Errorf("%s: %v", body, err)
		}
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-0", UID: now}}
		switch {
		case r.Method == http.MethodPatch && of.Metadata.UID != now:
			reject(w, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-0", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), of.Metadata.UID, "field is immutable")}))
		case r.Method == http.MethodDelete && *of.Preconditions.UID != now:
			reject(w, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-0", io.EOF))
		default:
			marked, deleted = marked || r.Method == http.MethodPatch, deleted || r.Method == http.MethodDelete
			answer(w, http.StatusOK, pod)
		}
	}))
	defer server.Close()
	g := &Index{Client: kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})}
	evict := func(uid types.UID) error {
		return g.DeletePod(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-0", UID: uid}}, "Test", "test")
	}
	if err := evict("first"); err != nil || marked || deleted {
		t.Errorf("A pod that no longer exists: got error %v; the new pod was marked: %t, deleted: %t.", err, marked, deleted)
	}
	if err := evict(now); err != nil || !marked || !deleted {
		t.Errorf("The pod that exists: got error %v; it was marked: %t, deleted: %t.", err, marked, deleted)
	}
}
