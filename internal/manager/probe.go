package manager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/internal/decide/health"
)

// Registered reports whether webhooks of an earlier manager are still registered.
func Registered(ctx context.Context, kubeconfig string) bool {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return false
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return false
	}
	name := client.ObjectKey{Name: DefaultOptions().WebhookConfig}

	return c.Get(ctx, name, &admissionregistrationv1.ValidatingWebhookConfiguration{}) == nil
}

// Probe reports whether the API server calls our webhooks, which it does some time after they are
// registered.
func Probe(ctx context.Context, config *rest.Config, controllers []string) error {
	answers, err := Answers(ctx, config, controllers)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if text := answers[name]; text != "" {
			return fmt.Errorf("webhook %s is not asked yet: %s", name, text)
		}
	}

	return nil
}

// Answers tries, as a dry run, to create an object for each webhook that the webhook must reject.
// It returns the result by the name of the webhook: "" if it was rejected.
func Answers(ctx context.Context, config *rest.Config, controllers []string) (map[string]string, error) {
	on := selected(controllers)
	scheme, err := newScheme(on)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster: %w", err)
	}
	answers := map[string]string{}
	for _, p := range on {
		for _, h := range p.webhooks {
			err := c.Create(ctx, h.mustReject(), client.DryRunAll)
			switch {
			case err == nil:
				answers[h.Name] = "an object that it must reject was accepted"
			case strings.Contains(err.Error(), fmt.Sprintf("admission webhook %q denied the request", h.Name)):
				answers[h.Name] = ""
			default:
				answers[h.Name] = err.Error()
			}
		}
	}

	return answers, nil
}

// Describe is what this release can run.
func Describe() ([]health.Part, error) {
	var all []health.Part
	for _, p := range parts {
		definitions, err := p.definitions()
		if err != nil {
			return nil, err
		}
		d := health.Part{Name: p.name, Definitions: definitions}
		for _, h := range p.webhooks {
			d.Webhooks = append(d.Webhooks, h.Name)
		}
		all = append(all, d)
	}

	return all, nil
}
