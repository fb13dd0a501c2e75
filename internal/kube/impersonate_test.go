package kube_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/internal/kube"
)

// TestImpersonate sends requests with and without a user.
func TestImpersonate(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Impersonate-User", "Impersonate-Group", "Impersonate-Extra-Scopes"} {
			got = append(got, r.Header.Values(name)...)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1"}`))
	}))
	t.Cleanup(server.Close)
	cases := map[string]struct {
		reason string
		user   string
		as     rest.ImpersonationConfig
		want   []string // nil: the request is not sent
	}{
		"User":       {"Requests are sent as the user, and the API server adds the groups.", "system:serviceaccount:a:b", rest.ImpersonationConfig{}, []string{"system:serviceaccount:a:b"}},
		"None":       {"Without a user nothing is sent.", "", rest.ImpersonationConfig{}, nil},
		"Preset":     {"Nothing is left of another impersonation.", "system:serviceaccount:a:b", rest.ImpersonationConfig{UserName: "x", Groups: []string{"system:masters"}, Extra: map[string][]string{"scopes": {"all"}}}, []string{"system:serviceaccount:a:b"}},
		"NonePreset": {"Nor is it used instead.", "", rest.ImpersonationConfig{UserName: "x"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got = nil
			config := &rest.Config{Host: server.URL, Impersonate: tc.as}
			config.Wrap(kube.Impersonate)
			c, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if tc.user != "" {
				ctx = kube.AsUser(ctx, tc.user)
			}
			maps := c.CoreV1().ConfigMaps("a")
			_, created := maps.Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{})
			_, read := maps.Get(ctx, "a", metav1.GetOptions{})
			for _, err := range []error{created, read, maps.Delete(ctx, "a", metav1.DeleteOptions{})} {
				if errors.Is(err, kube.ErrNoUser) != (tc.want == nil) || tc.want != nil && err != nil {
					t.Errorf("%s\nthe error is %v", tc.reason, err)
				}
			}
			var want []string
			for range 3 {
				want = append(want, tc.want...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
