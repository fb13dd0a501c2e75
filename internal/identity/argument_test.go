package identity_test

import (
	"strings"
	"testing"

	"github.com/arbor-control/arbor/internal/identity"
)

func TestSelector(t *testing.T) {
	plural := func(kind string) string { return strings.ToLower(kind) + "s" }
	deployment := identity.New("apps/v1", "Deployment", "shop", "web")
	service := identity.New("v1", "Service", "shop", "web")
	knative := identity.New("serving.knative.dev/v1", "Service", "shop", "web")
	role := identity.New("rbac.authorization.k8s.io/v1", "ClusterRole", "", "view")
	cases := map[string]struct {
		reason string
		text   string
		want   []identity.Identity
	}{
		"Name":       {"A kind and a name are enough.", "Deployment/web", []identity.Identity{deployment}},
		"Lower":      {"Kinds are written as for kubectl.", "deployment/web", []identity.Identity{deployment}},
		"Plural":     {"The plural too.", "deployments/web", []identity.Identity{deployment}},
		"Namespace":  {"A namespace chooses.", "Deployment/shop/web", []identity.Identity{deployment}},
		"Elsewhere":  {"Another namespace does not match.", "Deployment/blog/web", nil},
		"AnyGroup":   {"Without a group, all groups match.", "Service/web", []identity.Identity{service, knative}},
		"Group":      {"A group chooses, with dots.", "Service.serving.knative.dev/web", []identity.Identity{knative}},
		"Core":       {"The core group has no name.", "Service./web", []identity.Identity{service}},
		"Cluster":    {"Not every object has a namespace.", "clusterrole.rbac.authorization.k8s.io/view", []identity.Identity{role}},
		"InNoneGlob": {"A cluster-scoped object is in no namespace.", "clusterrole/shop/view", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, ok := identity.ParseSelector(tc.text)
			if !ok {
				t.Fatalf("%s\nParseSelector(%q) failed", tc.reason, tc.text)
			}
			for _, id := range []identity.Identity{deployment, service, knative, role} {
				want := false
				for _, w := range tc.want {
					want = want || w == id
				}
				if got := s.Matches(id, plural); got != want {
					t.Errorf("%s\n%q matches %+v: %t, want %t", tc.reason, tc.text, id, got, want)
				}
			}
		})
	}
	if s, _ := identity.ParseSelector("deployments/web"); s.Matches(deployment, nil) {
		t.Error("without plurals, a plural matches")
	}
}

func TestParseInvalid(t *testing.T) {
	for _, text := range []string{"", "/", "web", "Service/", "/web", "Service//web", "a/b/c/d", ".apps/web", "Service/shop/", "Service/we b"} {
		if s, ok := identity.ParseSelector(text); ok {
			t.Errorf("ParseSelector(%q): %+v, want an error", text, s)
		}
		if id, ok := identity.ParseArgument(text); ok {
			t.Errorf("ParseArgument(%q): %+v, want an error", text, id)
		}
	}
}

// FuzzArgument parses what a user may write. What can be read is written and read again
// as the same object, which the text selects.
func FuzzArgument(f *testing.F) {
	for _, text := range []string{"Service/web", "Deployment.apps/shop/web", "Service./web", "a/b/c/d", "//", "ClusterRole.rbac.authorization.k8s.io/system:node", "..//", "K/\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := identity.ParseArgument(text)
		s, parsed := identity.ParseSelector(text)
		if ok != parsed {
			t.Fatalf("ParseArgument(%q) and ParseSelector(%q) disagree", text, text)
		}
		if !ok {
			return
		}
		if again, ok := identity.ParseArgument(id.Argument()); !ok || again != id {
			t.Errorf("%q is %+v, and again %+v, %t", text, id, again, ok)
		}
		if !s.Matches(id, nil) {
			t.Errorf("%q does not match %+v, which it names", text, id)
		}
	})
}

// FuzzRead reads anything, and never panics. The result can be named on a command line.
func FuzzRead(f *testing.F) {
	f.Add(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"a"}}`)
	f.Add(`{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"a"},"patch":{"apiVersion":"v1","kind":"Pod"}}`)
	f.Add(`{"metadata":7}`)
	f.Fuzz(func(t *testing.T, manifest string) {
		id := identity.Read(manifest)
		if id.Target().IsPatch() || id.Target().String() == "" && id.Name != "" {
			t.Errorf("%+v", id)
		}
		if got, known := id.Normalize(func(string, string) (bool, bool) { return false, true }); !known || got.Namespace != "" {
			t.Errorf("Normalize(...) of %+v: %+v, %t", id, got, known)
		}
	})
}
