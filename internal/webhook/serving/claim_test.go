package serving

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/names"
)

// TestClaim follows what a manager sees of the registration, step by step.
func TestClaim(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	type step struct {
		stored  string // whose it is: own, other, several (without leader election), dead (several, and it does not answer), fails (the write does), none (without a fingerprint), empty
		elected bool
		after   time.Duration
		allowed bool
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"Own":       {"What is its own is kept right, leader or not.", []step{{"own", false, 0, true}, {"own", true, 0, true}, {"own", false, 0, true}}},
		"Empty":     {"The chart creates an empty one, which any replica fills.", []step{{"empty", false, 0, true}, {"empty", false, 0, true}}},
		"Waiting":   {"Another version leads.", []step{{"other", false, 0, false}, {"other", false, time.Hour, false}}},
		"Elected":   {"The leader replaces it, and not again at once.", []step{{"other", false, 0, false}, {"other", true, 0, true}, {"own", true, 0, true}, {"other", true, 0, false}, {"other", true, reclaim - 1, false}, {"other", true, 1, true}, {"other", true, 0, false}}},
		"Failed":    {"A write that failed has replaced nothing.", []step{{"fails", true, 0, true}, {"fails", true, 0, true}, {"other", true, 0, true}, {"other", true, 0, false}}},
		"Many":      {"Without leader election, each replaces it once.", []step{{"several", true, 0, true}, {"several", true, time.Hour, false}}},
		"ManyFirst": {"The one that filled it has had its turn.", []step{{"empty", true, 0, true}, {"several", true, time.Hour, false}}},
		"ManyDead":  {"The last one has ended, and left its registration behind.", []step{{"several", true, 0, true}, {"dead", true, 0, false}, {"dead", true, reclaim, true}, {"several", true, time.Hour, false}}},
		"ManyOlder": {"A release without fingerprints does not know turns.", []step{{"none", true, 0, true}, {"none", true, 0, false}, {"none", true, reclaim, true}}},
		"Older":     {"A release without fingerprints writes its own for as long as it runs.", []step{{"none", true, 0, true}, {"none", true, 0, false}, {"none", true, reclaim, true}, {"none", true, 0, false}}},
		"OlderLead": {"As long as it leads, it has the registration.", []step{{"none", false, 0, false}, {"none", false, time.Hour, false}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, now := &claim{}, now
			for i, s := range tc.steps {
				now = now.Add(s.after)
				stored := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 1)}
				switch s.stored {
				case "empty":
					stored.Webhooks = nil
				case "none":
				default:
					stored.Annotations = map[string]string{names.RegistrationAnnotation: s.stored}
				}
				if len(stored.Webhooks) > 0 {
					stored.Webhooks[0].ClientConfig.URL = new("https://127.0.0.1:1/p")
				}
				got := c.allowed(stored, "own", s.elected, s.stored != "several" && s.stored != "dead", now, func(string) bool { return s.stored != "dead" })
				if got != s.allowed {
					t.Errorf("%s\nstep %d: got %t", tc.reason, i, got)
				}
				if got && s.stored != "fails" {
					c.done(now)
				}
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	base := Options{Configuration: "arbor", Webhooks: hooks, Address: Address{Host: "127.0.0.1", Port: 1}, Settings: DefaultSettings()}
	of := func(change func(*Options), bundle string) string {
		o := base
		change(&o)

		return registration(o, []byte(bundle)).Annotations[names.RegistrationAnnotation]
	}
	same := of(func(*Options) {}, "a")
	cases := map[string]struct {
		reason string
		change func(*Options)
		bundle string
		same   bool
	}{
		"Trust":    {"Certificates are replaced while managers run.", func(*Options) {}, "b", true},
		"Address":  {"Replicas have addresses of their own.", func(o *Options) { o.Address.Port = 2 }, "a", true},
		"Webhooks": {"Another version has other webhooks.", func(o *Options) { o.Webhooks = append(o.Webhooks[:1:1], Webhook{Name: "x.y.z"}) }, "a", false},
		"Policy":   {"So do other flags.", func(o *Options) { o.Settings.FailurePolicy = admissionregistrationv1.Ignore }, "a", false},
		"Selector": {"All of them.", func(o *Options) { o.Settings.ObjectSelector.MatchLabels = map[string]string{"a": "b"} }, "a", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := of(tc.change, tc.bundle); (got == same) != tc.same || got == "" {
				t.Errorf("%s\n%s and %s", tc.reason, same, got)
			}
		})
	}
}

// The registration of other managers is kept, except for the CA bundle.
func TestAdopted(t *testing.T) {
	url, timeout := "https://127.0.0.1:1/p", int32(7)
	stored := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "arbor", Annotations: map[string]string{names.RegistrationAnnotation: "other"}},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "a.b.c", TimeoutSeconds: &timeout, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte("old")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		}},
	}
	got, err := adopted(stored, []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	w := got.Webhooks[0]
	type summary struct {
		Mark, Name, URL, Trust, Label string
		Timeout                       int32
	}
	want := summary{"other", "a.b.c", url, "new", "b", 7}
	if diff := cmp.Diff(want, summary{got.Annotations[names.RegistrationAnnotation], *w.Name, *w.ClientConfig.URL, string(w.ClientConfig.CABundle), w.NamespaceSelector.MatchLabels["a"], *w.TimeoutSeconds}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         metav1.LabelSelector
		fails        bool
	}{
		"Empty":   {reason: "All are selected.", text: ""},
		"Kubectl": {reason: "As kubectl takes it.", text: "team in (a,b),tier notin (test)", want: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "In", Values: []string{"a", "b"}}, {Key: "tier", Operator: "NotIn", Values: []string{"test"}}}}},
		"JSON":    {reason: "As manifests have it.", text: `{"matchLabels":{"team":"a"},"matchExpressions":[{"key":"x","operator":"Exists"}]}`, want: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Exists"}}}},
		"Typo":    {reason: "A field that does not exist would select everything.", text: `{"matchLabel":{"team":"a"}}`, fails: true},
		"Invalid": {reason: "The API server would reject it later.", text: `{"matchExpressions":[{"key":"x","operator":"Is"}]}`, fails: true},
		"Rubbish": {reason: "It is no selector.", text: "a in", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSelector(tc.text)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if tc.fails {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			o := Options{Webhooks: hooks, Address: Address{Host: "h", Port: 1}, Settings: DefaultSettings()}
			o.Settings.NamespaceSelector = got
			all := registration(o, nil).Webhooks[0].NamespaceSelector.MatchExpressions
			if last := all[len(all)-1]; *last.Key != names.SkipAdmissionLabel || *last.Operator != metav1.LabelSelectorOpNotIn {
				t.Errorf("%s\nthe label %s does not skip admission: %v", tc.reason, names.SkipAdmissionLabel, last)
			}
		})
	}
}
