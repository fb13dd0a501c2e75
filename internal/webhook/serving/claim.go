package serving

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/arbor-control/arbor/api/names"
)

// reclaim is how long a leader waits before it replaces a registration again. A release
// without fingerprints writes its own at once, for as long as one of its managers runs.
const reclaim = 30 * time.Second

// fingerprint identifies what managers of one version, with the same flags, register.
// Addresses and trust are not part of it: they change while a manager runs.
func fingerprint(webhooks []admissionregistrationv1ac.ValidatingWebhookApplyConfiguration) string {
	hash := sha256.New()
	for _, w := range webhooks {
		if c := w.ClientConfig; c != nil {
			w.ClientConfig = &admissionregistrationv1ac.WebhookClientConfigApplyConfiguration{Service: c.Service}
		}
		data, err := json.Marshal(w)
		if err != nil {
			panic(fmt.Sprintf("cannot encode a webhook: %v", err)) // it has strings and numbers only
		}
		hash.Write(data)
	}

	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// A claim decides whether a manager may replace the registration of another one. In a rollout,
// managers of two versions or with different flags run at the same time. Only the leader replaces
// the registration of other managers, and waits between two writes: the last one that was elected
// has the registration. Without leader election there can be several leaders, and each replaces it
// once, so that no two managers overwrite each other in a loop; and again if no manager listens
// where the stored registration points.
type claim struct {
	last time.Time // when the manager wrote its own registration, zero if it did not
}

// done records that the manager has written its own registration.
func (c *claim) done(now time.Time) { c.last = now }

// allowed reports whether the manager may write its own registration over the stored one.
// It is the only leader if sole is set.
func (c *claim) allowed(stored *admissionregistrationv1.ValidatingWebhookConfiguration, own string, elected, sole bool, now time.Time, answers func(address string) bool) bool {
	switch by := stored.Annotations[names.RegistrationAnnotation]; {
	case by == own || len(stored.Webhooks) == 0:
		return true
	case !elected:
		return false
	case by == "" || sole:
		return now.Sub(c.last) >= reclaim
	default:
		return c.last.IsZero() || now.Sub(c.last) >= reclaim && isDead(stored, answers)
	}
}

// isDead reports whether no webhook of a registration answers. Those behind a Service are not asked:
// its endpoints are those of managers that run.
func isDead(stored *admissionregistrationv1.ValidatingWebhookConfiguration, answers func(address string) bool) bool {
	return !slices.ContainsFunc(stored.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.ClientConfig.URL == nil || answers(*w.ClientConfig.URL)
	})
}

// trusts reports whether the stored registration has the trust of today for all webhooks.
func trusts(stored *admissionregistrationv1.ValidatingWebhookConfiguration, bundle []byte) bool {
	return !slices.ContainsFunc(stored.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return !bytes.Equal(w.ClientConfig.CABundle, bundle)
	})
}

// adopted is the stored registration of other managers, with the trust of today, which is
// the same for all of them. It is for the version that was read: those managers may have
// changed it since.
func adopted(stored *admissionregistrationv1.ValidatingWebhookConfiguration, bundle []byte) (*admissionregistrationv1ac.ValidatingWebhookConfigurationApplyConfiguration, error) {
	config := admissionregistrationv1ac.ValidatingWebhookConfiguration(stored.Name).WithResourceVersion(stored.ResourceVersion).
		WithLabels(map[string]string{names.ManagedByLabel: names.Arbor})
	if by := stored.Annotations[names.RegistrationAnnotation]; by != "" {
		config.WithAnnotations(map[string]string{names.RegistrationAnnotation: by})
	}
	data, err := json.Marshal(stored.Webhooks)
	if err != nil {
		return nil, fmt.Errorf("cannot read ValidatingWebhookConfiguration %s: %w", stored.Name, err)
	}
	if err := json.Unmarshal(data, &config.Webhooks); err != nil {
		return nil, fmt.Errorf("cannot read ValidatingWebhookConfiguration %s: %w", stored.Name, err)
	}
	for i := range config.Webhooks {
		if c := config.Webhooks[i].ClientConfig; c != nil {
			c.CABundle = bundle
		}
	}

	return config, nil
}
