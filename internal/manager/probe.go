package manager

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
