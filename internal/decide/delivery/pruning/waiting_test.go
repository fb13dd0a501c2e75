package pruning_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
	"github.com/arbor-control/arbor/internal/identity"
)

func TestDeleteFirst(t *testing.T) {
	id := func(kind, namespace, name string) identity.Identity {
		group := ""
		if kind == "Ingress" {
			group = "networking.k8s.io"
		}

		return identity.Identity{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	var (
		other    = id("Service", "other", "web")
		service  = id("Service", "shop", "web-v1")
		config   = id("ConfigMap", "shop", "web-v1")
		ingress  = id("Ingress", "shop", "old")
		role     = id("ClusterRole", "", "old")
		waiting  = []identity.Identity{other, config, service, ingress, role}
		nodePort = `cannot apply Service shop/web: Service "web" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated`
	)
	cases := map[string]struct {
		reason  string
		object  identity.Identity
		message string
		waiting []identity.Identity
		want    []identity.Identity
	}{
		"NodePort":  {"Only a Service has a node port; the one of the same namespace is the most likely.", id("Service", "shop", "web"), nodePort, waiting, []identity.Identity{service, other}},
		"ClusterIP": {"So it is with an address.", id("Service", "shop", "web"), `failed to allocate IP 10.96.0.9: provided IP is already allocated`, waiting, []identity.Identity{service, other}},
		"NoService": {"No object that waits can have the port.", id("Service", "shop", "web"), nodePort, []identity.Identity{config, ingress}, nil},
		"Quota":     {"A quota is about a namespace, and an object of the same kind is the most likely.", id("ConfigMap", "shop", "new"), `configmaps "new" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2`, waiting, []identity.Identity{config, service, ingress}},
		"Elsewhere": {"Nothing of the namespace waits.", id("ConfigMap", "prod", "new"), `exceeded quota: q`, waiting, nil},
		"Mentioned": {"The webhook names the object.", id("Ingress", "shop", "new"), `admission webhook "v.example.com" denied the request: host "a" and path "/" conflict with ingress shop/old`, waiting, []identity.Identity{ingress}},
		"Host":      {"The webhook reports that the host is taken, and not by which object.", id("Ingress", "shop", "new"), `denied the request: host "a" is already defined`, waiting, []identity.Identity{ingress}},
		"Longer":    {"A longer name is another object.", id("Ingress", "shop", "new"), `conflicts with shop/older, ashop/old, shop/old-1`, waiting, nil},
		"Sentence":  {"A dot ends the sentence.", id("Ingress", "shop", "new"), `it conflicts with shop/older and shop/old.`, waiting, []identity.Identity{ingress}},
		"Itself":    {"Our own errors name the object that is applied, and a tombstone may have the same name.", id("Service", "shop", "old"), `cannot apply Service shop/old: the server is on fire`, waiting, nil},
		"Other":     {"A manifest that is wrong stays wrong.", id("Service", "shop", "web"), `Service "web" is invalid: spec.ports: Required value`, waiting, nil},
		"Nothing":   {"Nothing waits.", id("Service", "shop", "web"), nodePort, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pruning.DeleteFirst(tc.object, tc.message, tc.waiting)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := pruning.NewWaiting(tc.waiting).Hinders(tc.object, tc.message); got != (len(tc.want) > 0) {
				t.Errorf("%s\nthe set returns %t", tc.reason, got)
			}
		})
	}
}

// TestWaiting asks the set of tombstones and each tombstone about random errors.
func TestWaiting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	id := func() identity.Identity {
		return identity.Identity{Kind: pick("Service", "ConfigMap"), Namespace: pick("", "a", "b", "a-b"), Name: pick("a", "b", "a.b", "a-b", "system:a")}
	}
	found := 0
	for range 20_000 {
		var waiting []identity.Identity
		for range r.IntN(4) {
			waiting = append(waiting, id())
		}
		var words []string
		for range r.IntN(5) {
			one := id()
			words = append(words, pick("already allocated", "exceeded quota", "x", "x", one.Namespace+"/"+one.Name, one.Namespace+"/"+one.Name+".", `"`+one.Namespace+"/"+one.Name+`"`, one.Name))
		}
		object, message := id(), strings.Join(words, " ")
		want := len(pruning.DeleteFirst(object, message, waiting)) > 0
		if got := pruning.NewWaiting(waiting).Hinders(object, message); got != want {
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
