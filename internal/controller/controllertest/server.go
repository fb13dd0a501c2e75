package controllertest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A Server is a fake client of which one request fails.
type Server struct {
	client.Client

	// requests are those that were sent, such as "get Subnet", and writes counts the writes that
	// changed something.
	requests []string
	writes   int

	// failure is that of the request at a place, nil once it has failed; failed is which one it was.
	failure *failure
	at      int
	failed  string

	onCreate func(client.Object)
}

func newServer(t *testing.T, c Case) *Server {
	t.Helper()
	s := &Server{onCreate: c.OnCreate}
	b := fake.NewClientBuilder().WithScheme(c.Scheme).WithObjects(copies(c.Objects)...).WithStatusSubresource(c.Status...).WithInterceptorFuncs(s.intercept())
	for _, index := range c.Index {
		if err := index(t.Context(), indexer{b}); err != nil {
			t.Fatal(err)
		}
	}
	s.Client = b.Build()

	return s
}

// An indexer indexes objects of a fake client.
type indexer struct{ builder *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (i indexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(o, field, values)

	return nil
}

func copies(all []client.Object) []client.Object {
	var out []client.Object
	for _, o := range all {
		out = append(out, o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // it is a copy
	}

	return out
}

// do sends a request, unless it is to fail.
func (s *Server) do(verb string, about runtime.Object, send func() error) error {
	name := verb + " " + kindOf(about)
	i := len(s.requests)
	s.requests = append(s.requests, name)
	if s.failure == nil || i != s.at {
		return s.send(verb, send)
	}
	f := s.failure
	s.failure, s.failed = nil, name
	if f.after {
		_ = s.send(verb, send) // the controller does not get the answer
	}

	return fmt.Errorf("%s: %w", name, f.err)
}

// sentAgain reports whether the request that failed was sent again.
func (s *Server) sentAgain() bool { return slices.Contains(s.requests[s.at+1:], s.failed) }

func (s *Server) send(verb string, send func() error) error {
	err := send()
	if err == nil && verb != "get" && verb != "list" {
		s.writes++
	}

	return err
}

func kindOf(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return strings.TrimSuffix(kind, "List")
	}

	return strings.TrimSuffix(reflect.TypeOf(o).Elem().Name(), "List")
}

func (s *Server) intercept() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return s.do("get", o, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return s.do("list", list, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if s.onCreate != nil {
				s.onCreate(o)
			}
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-" + o.GetName()))
			}

			return s.do("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return s.do("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return s.do("update", o, func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return s.do("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return s.do("update "+sub, o, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.do("patch "+sub, o, func() error { return asServer(c.SubResource(sub).Patch(ctx, o, p, opts...)) })
		},
	}
}

// asServer returns the error of a JSON patch whose test fails as the API server does, which the fake
// client does not.
func asServer(err error) error {
	if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err
	}

	return apierrors.NewInvalid(schema.GroupKind{}, "x", field.ErrorList{field.Invalid(field.NewPath("patch"), "", err.Error())})
}

// state is everything that must be the same in the end, without versions.
func (s *Server) state(t *testing.T, c Case) map[string]any {
	t.Helper()
	s.failure = nil
	all := map[string]any{}
	for _, list := range c.Final() {
		if err := s.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range items {
			accessor, err := meta.Accessor(o)
			if err != nil {
				t.Fatal(err)
			}
			accessor.SetResourceVersion("")
			accessor.SetManagedFields(nil)
			if accessor.GetDeletionTimestamp() != nil {
				accessor.SetDeletionTimestamp(&metav1.Time{})
			}
			all[fmt.Sprintf("%s %s/%s", kindOf(o), accessor.GetNamespace(), accessor.GetName())] = o
		}
	}

	return all
}

// Peek reads an object without counting as a request.
func (s *Server) Peek(ctx context.Context, key client.ObjectKey, o client.Object) error {
	requests, failure := s.requests, s.failure
	defer func() { s.requests, s.failure = requests, failure }()
	s.failure = nil

	return s.Get(ctx, key, o)
}
