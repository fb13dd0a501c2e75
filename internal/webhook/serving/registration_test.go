package serving

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

var hooks = []Webhook{{Name: "a.b.c", Path: "/p", Group: "g", Version: "v1", Resource: "things"}}

func TestAddress(t *testing.T) {
	cases := map[string]struct {
		reason string
		at     Address
		hosts  []string
		url    string
		path   string
	}{
		"Host": {
			reason: "Outside of a cluster the API server is told a URL.",
			at:     Address{Host: "127.0.0.1", Port: 9443, Namespace: "ns"},
			hosts:  []string{"127.0.0.1"},
			url:    "https://127.0.0.1:9443/p",
		},
		"Service": {
			reason: "In a cluster it is told a Service, by whose name it checks the certificate.",
			at:     Address{Service: "svc", Namespace: "ns", Host: "127.0.0.1", Port: 9443},
			hosts:  []string{"svc.ns.svc", "svc.ns.svc.cluster.local"},
			path:   "/p",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.hosts, tc.at.hosts()); diff != "" {
				t.Errorf("%s\nhosts (-want +got):\n%s", tc.reason, diff)
			}
			c := registration(Options{Configuration: "arbor", Webhooks: hooks, Address: tc.at}, []byte("trust")).Webhooks[0].ClientConfig
			if string(c.CABundle) != "trust" {
				t.Errorf("%s\ntrusted is %q", tc.reason, c.CABundle)
			}
			switch {
			case tc.url != "" && (c.URL == nil || *c.URL != tc.url || c.Service != nil):
				t.Errorf("%s\nURL is %v, Service %v", tc.reason, c.URL, c.Service)
			case tc.path != "" && (c.URL != nil || *c.Service.Path != tc.path || *c.Service.Name != "svc" || *c.Service.Namespace != "ns"):
				t.Errorf("%s\nURL is %v, Service %v", tc.reason, c.URL, c.Service)
			}
		})
	}
}

func TestKeepAddresses(t *testing.T) {
	stored := func(name, url string) []admissionregistrationv1.ValidatingWebhook {
		return []admissionregistrationv1.ValidatingWebhook{{Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}}}
	}
	ours := Address{Host: "127.0.0.1", Port: 1}

	const there, nobody = "https://127.0.0.1:2/p", "https://127.0.0.1:3/p"

	cases := map[string]struct {
		reason    string
		have      []admissionregistrationv1.ValidatingWebhook
		want      string
		elsewhere bool
	}{
		"Other":   {"Another replica's address stays: taking it back and forth would never end.", stored("a.b.c", there), there, true},
		"Dead":    {"One where nobody answers is taken over.", stored("a.b.c", nobody), "https://127.0.0.1:1/p", false},
		"Ours":    {"Ours is ours.", stored("a.b.c", "https://127.0.0.1:1/p"), "https://127.0.0.1:1/p", false},
		"None":    {"A webhook that is not registered gets ours.", nil, "https://127.0.0.1:1/p", false},
		"Unknown": {"An address of another webhook means nothing.", stored("x.y.z", there), "https://127.0.0.1:1/p", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := registration(Options{Configuration: "arbor", Webhooks: hooks, Address: ours}, nil)
			elsewhere := keepAddresses(want, tc.have, func(address string) bool { return address == there })
			if got := *want.Webhooks[0].ClientConfig.URL; got != tc.want || elsewhere != tc.elsewhere {
				t.Errorf("%s\ngot %s, elsewhere %t; want %s, %t", tc.reason, got, elsewhere, tc.want, tc.elsewhere)
			}
		})
	}
}
