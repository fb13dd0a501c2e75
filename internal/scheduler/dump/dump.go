package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// A kind is one of those that scheduling looks at.
type kind struct {
	schema.GroupVersionResource

	name string
}

// Kinds are what a dump holds: everything that a plugin of kube-scheduler reads.
func kinds() []kind {
	of := func(group, version, resource, name string) kind {
		return kind{schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, name}
	}

	return []kind{
		of("", "v1", "namespaces", "Namespace"),
		of("", "v1", "nodes", "Node"),
		of("", "v1", "pods", "Pod"),
		of("", "v1", "persistentvolumes", "PersistentVolume"),
		of("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
		of("", "v1", "services", "Service"),
		of("", "v1", "replicationcontrollers", "ReplicationController"),
		of("apps", "v1", "replicasets", "ReplicaSet"),
		of("apps", "v1", "statefulsets", "StatefulSet"),
		of("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
		of("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"),
		of("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup"),
		of("storage.k8s.io", "v1", "storageclasses", "StorageClass"),
		of("storage.k8s.io", "v1", "csinodes", "CSINode"),
		of("storage.k8s.io", "v1", "csidrivers", "CSIDriver"),
		of("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
		of("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment"),
		of("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim"),
		of("resource.k8s.io", "v1", "resourceslices", "ResourceSlice"),
		of("resource.k8s.io", "v1", "deviceclasses", "DeviceClass"),
	}
}

// Kinds names the resources of a dump, for whoever writes one.
func Kinds() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, k := range kinds() {
		all = append(all, k.GroupVersionResource)
	}

	return all
}

// KindAt returns the resource of a dump that is listed at a path.
func KindAt(path string) (schema.GroupVersionResource, bool) {
	for _, k := range kinds() {
		if pathOf(k) == path {
			return k.GroupVersionResource, true
		}
	}

	return schema.GroupVersionResource{}, false
}

// Knows says whether scheduling looks at a kind.
func Knows(gvk schema.GroupVersionKind) bool {
	_, ok := kindOf(gvk)

	return ok
}

// Offline is a cluster that consists of objects, for Open. It can be read, and
// nothing ever happens in it. Objects that scheduling does not look at are left
// out; the others must be what their kind says.
func Offline(objects []unstructured.Unstructured) (*rest.Config, error) {
	types := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(types), v2alpha2.AddToScheme(types)); err != nil {
		return nil, err
	}
	server := &server{lists: map[string][]unstructured.Unstructured{}}
	for _, o := range objects {
		k, ok := kindOf(o.GroupVersionKind())
		if !ok {
			continue
		}
		if err := check(types, o); err != nil {
			return nil, fmt.Errorf("%s %s cannot be read: %w", o.GetKind(), name(o), err)
		}
		if o.GetUID() == "" {
			// Who writes a dump by hand gives names, and pods are told apart by more.
			o = *o.DeepCopy()
			o.SetUID(apitypes.UID(o.GetKind() + " " + name(o)))
		}
		path := pathOf(k)
		server.lists[path] = append(server.lists[path], o)
	}

	return &rest.Config{Host: "http://offline.invalid", Transport: server}, nil
}

// check reads an object into the type of its kind: whoever reads a list would
// find the whole of it unreadable, and ask again for ever.
func check(types *runtime.Scheme, o unstructured.Unstructured) error {
	if o.GetName() == "" {
		return errors.New("metadata.name is empty: give it one")
	}
	into, err := types.New(o.GroupVersionKind())
	if err != nil {
		return err
	}

	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}

func name(o unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}

	return o.GetNamespace() + "/" + o.GetName()
}

func kindOf(gvk schema.GroupVersionKind) (kind, bool) {
	for _, k := range kinds() {
		if k.Group == gvk.Group && k.Version == gvk.Version && k.name == gvk.Kind {
			return k, true
		}
	}

	return kind{}, false
}

func pathOf(k kind) string {
	if k.Group == "" {
		return "/api/" + k.Version + "/" + k.Resource
	}

	return "/apis/" + k.Group + "/" + k.Version + "/" + k.Resource
}

// A server answers requests as an API server does whose objects never change.
type server struct {
	lists map[string][]unstructured.Unstructured
}

// RoundTrip answers lists. A watch has no events, and all other requests are rejected.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	for _, k := range kinds() {
		switch {
		case r.Method != http.MethodGet:
		case pathOf(k) == r.URL.Path && query.Get("watch") != "" && query.Get("sendInitialEvents") != "":
			// Who asks for a list by watching is sent to the plain list.
			return refusal(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		case pathOf(k) == r.URL.Path && query.Get("watch") != "":
			return answer(r, http.StatusOK, emptyWatch(r.Context())), nil
		case pathOf(k) == r.URL.Path:
			return s.list(r, k, query.Get("fieldSelector"))
		case strings.HasPrefix(pathOf(k), r.URL.Path+"/"):
			return s.discover(r)
		}
	}

	return refusal(r, http.StatusNotFound, metav1.StatusReasonNotFound)
}

func (s *server) list(r *http.Request, k kind, selector string) (*http.Response, error) {
	items := make([]map[string]any, 0, len(s.lists[r.URL.Path]))
	for _, o := range s.lists[r.URL.Path] {
		if selected(o, selector) {
			items = append(items, o.Object)
		}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": k.GroupVersion().String(), "kind": k.name + "List",
		"metadata": map[string]any{"resourceVersion": "1"}, "items": items,
	})
	if err != nil {
		return nil, err
	}

	return answer(r, http.StatusOK, io.NopCloser(bytes.NewReader(body))), nil
}

// selected knows the two selectors with which pods are listed here.
func selected(o unstructured.Unstructured, selector string) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	for term := range strings.SplitSeq(selector, ",") {
		if value, ok := strings.CutPrefix(term, "status.phase!="); ok && phase == value {
			return false
		}
		if value, ok := strings.CutPrefix(term, "status.phase="); ok && phase != value {
			return false
		}
	}

	return true
}

// discover names what there is below a group and version.
func (s *server) discover(r *http.Request) (*http.Response, error) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}}
	for _, k := range kinds() {
		if strings.HasPrefix(pathOf(k), r.URL.Path+"/") {
			list.GroupVersion = k.GroupVersion().String()
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Resource, Kind: k.name})
		}
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}

	return answer(r, http.StatusOK, io.NopCloser(bytes.NewReader(body))), nil
}

func refusal(r *http.Request, code int, reason metav1.StatusReason) (*http.Response, error) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "a dump can only be read", //nolint:gosec // an HTTP status
	})
	if err != nil {
		return nil, err
	}

	return answer(r, code, io.NopCloser(bytes.NewReader(body))), nil
}

func answer(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Request: r, StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1,
	}
}

// emptyWatch is a watch without events. It ends with ctx.
func emptyWatch(ctx context.Context) io.ReadCloser {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(io.EOF) })

	return reader
}
