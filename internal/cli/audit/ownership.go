package audit

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// workloadKind is what an audit calls all kinds with containers.
const workloadKind = "Workload"

// workloads are the resources with containers that people apply, and where the
// containers are.
var workloads = []struct {
	resource schema.GroupVersionResource
	within   []fields.Scope
}{
	{appsResource("deployments"), containersIn("spec.template.spec")},
	{appsResource("statefulsets"), containersIn("spec.template.spec")},
	{appsResource("daemonsets"), containersIn("spec.template.spec")},
	{batchResource("jobs"), containersIn("spec.template.spec")},
	{batchResource("cronjobs"), containersIn("spec.jobTemplate.spec.template.spec")},
}

func appsResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
}

func batchResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: name}
}

func containersIn(pod string) []fields.Scope {
	return []fields.Scope{fields.MustParseScope(pod + ".initContainers"), fields.MustParseScope(pod + ".containers")}
}

// auditOwnership finds containers that somebody applies and could not remove.
func auditOwnership(ctx context.Context, list source.Lister, namespace string) ([]findings.AuditPart, []show.Finding, error) {
	var out []show.Finding

	seen, missing := findings.AuditPart{Kind: workloadKind}, 0

	for _, w := range workloads {
		objects, err := list(ctx, source.Query{Resource: w.resource, Namespace: namespace})
		if errors.Is(err, source.ErrNotInstalled) {
			missing++

			continue
		}

		if err != nil {
			return nil, nil, err
		}

		seen.Checked += len(objects)

		for _, obj := range objects {
			out = append(out, owners.Splits(obj, w.within)...)
		}
	}

	if missing == len(workloads) {
		return nil, nil, source.ErrNotInstalled
	}

	return []findings.AuditPart{seen}, out, nil
}
