package manager

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Registered tells whether webhooks of an earlier manager are still registered.
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

// Probe tells whether the API server asks our webhooks, which is later than
// when they are registered: it tries, as a dry run, to create an object that
// each part must refuse.
func Probe(ctx context.Context, config *rest.Config, controllers []string) error {
	on := selected(controllers)
	scheme, err := newScheme(on)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot reach the cluster: %w", err)
	}
	for _, p := range on {
		for _, h := range p.webhooks {
			err := c.Create(ctx, h.refused(), client.DryRunAll)
			if err == nil {
				return fmt.Errorf("webhook %s is not asked yet", h.Name)
			}
			if !strings.Contains(err.Error(), fmt.Sprintf("admission webhook %q denied the request", h.Name)) {
				return fmt.Errorf("webhook %s is not asked yet (%w)", h.Name, err)
			}
		}
	}

	return nil
}
