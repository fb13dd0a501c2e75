package delivery_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestNeedsPruning(t *testing.T) {
	id := func(kind, namespace, name string) delivery.Identity {
		group := ""
		if kind == "Ingress" {
			group = "networking.k8s.io"
		}

		return delivery.Identity{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	var (
		other    = id("Service", "other", "web")
		service  = id("Service", "shop", "web-v1")
		config   = id("ConfigMap", "shop", "web-v1")
		ingress  = id("Ingress", "shop", "old")
		role     = id("ClusterRole", "", "old")
		waiting  = []delivery.Identity{other, config, service, ingress, role}
		nodePort = `cannot apply Service shop/web: Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated`
	)
	cases := map[string]struct {
		reason  string
		object  delivery.Identity
		message string
		waiting []delivery.Identity
		want    []delivery.Identity
	}{
		"NodePort":  {"Only a Service has a node port; the one of the same namespace is the most likely.", id("Service", "shop", "web"), nodePort, waiting, []delivery.Identity{service, other}},
		"ClusterIP": {"So it is with an address.", id("Service", "shop", "web"), `failed to allocate IP 10.96.0.9: provided IP is already allocated`, waiting, []delivery.Identity{service, other}},
		"NoService": {"No object that waits can have the port.", id("Service", "shop", "web"), nodePort, []delivery.Identity{config, ingress}, nil},
		"Quota":     {"A quota is about a namespace, and an object of the same kind is the most likely.", id("ConfigMap", "shop", "new"), `configmaps "new" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2`, waiting, []delivery.Identity{config, service, ingress}},
		"Elsewhere": {"Nothing of the namespace waits.", id("ConfigMap", "prod", "new"), `exceeded quota: q`, waiting, nil},
		"Mentioned": {"The webhook names the object.", id("Ingress", "shop", "new"), `admission webhook "v.example.com" denied the request: host "a" and path "/" conflict with ingress shop/old`, waiting, []delivery.Identity{ingress}},
		"Host":      {"The webhook says that the host is taken, and not by which object.", id("Ingress", "shop", "new"), `denied the request: host "a" is already defined`, waiting, []delivery.Identity{ingress}},
		"Longer":    {"A longer name is another object.", id("Ingress", "shop", "new"), `conflicts with shop/older, ashop/old, shop/old-1`, waiting, nil},
		"Sentence":  {"A dot ends the sentence.", id("Ingress", "shop", "new"), `it conflicts with shop/older and shop/old.`, waiting, []delivery.Identity{ingress}},
		"Itself":    {"Our own errors name the object that is applied, and a tombstone may have the same name.", id("Service", "shop", "old"), `cannot apply Service shop/old: the server is on fire`, waiting, nil},
		"Other":     {"A manifest that is wrong stays wrong.", id("Service", "shop", "web"), `Service "web" is invalid: spec.ports: Required value`, waiting, nil},
		"Nothing":   {"Nothing waits.", id("Service", "shop", "web"), nodePort, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, delivery.NeedsPruning(tc.object, tc.message, tc.waiting)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := delivery.NewWaiting(tc.waiting).Hinders(tc.object, tc.message); got != (len(tc.want) > 0) {
				t.Errorf("%s\nthe set says %t", tc.reason, got)
			}
		})
	}
}

// TestWaiting asks the set of tombstones and each tombstone about random errors.
func TestWaiting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	id := func() delivery.Identity {
		return delivery.Identity{Kind: pick("Service", "ConfigMap"), Namespace: pick("", "a", "b", "a-b"), Name: pick("a", "b", "a.b", "a-b", "system:a")}
	}
	found := 0
	for range 20_000 {
		var waiting []delivery.Identity
		for range r.IntN(4) {
			waiting = append(waiting, id())
		}
		var words []string
		for range r.IntN(5) {
			one := id()
			words = append(words, pick("already allocated", "exceeded quota", "x", "x", one.Namespace+"/"+one.Name, one.Namespace+"/"+one.Name+".", `"`+one.Namespace+"/"+one.Name+`"`, one.Name))
		}
		object, message := id(), strings.Join(words, " ")
		want := len(delivery.NeedsPruning(object, message, waiting)) > 0
		if got := delivery.NewWaiting(waiting).Hinders(object, message); got != want {
			t.Fatalf("%v of %q with %v: got %t, want %t", object, message, waiting, got, want)
		}
		if want {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d of the errors are about tombstones", found)
	}
}

func TestPruneFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   delivery.PruneFirst
		again  string
	}{
		"Empty":   {reason: "There is no request."},
		"Several": {"Groups and namespaces are optional.", "u-1 Service/shop/web Deployment.apps/shop/web ClusterRole.rbac.authorization.k8s.io/view", delivery.PruneFirst{Synthesis: "u-1", Objects: []delivery.Identity{{Kind: "Service", Namespace: "shop", Name: "web"}, {Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "view"}}}, ""},
		"Invalid": {"What names no object is ignored.", "u-1  web Service/shop/web a/b/c/d", delivery.PruneFirst{Synthesis: "u-1", Objects: []delivery.Identity{{Kind: "Service", Namespace: "shop", Name: "web"}}}, "u-1 Service/shop/web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := delivery.ParsePruneFirst(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			want := tc.again
			if want == "" {
				want = tc.text
			}
			if again := got.String(); again != want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, again, want)
			}
		})
	}
}
