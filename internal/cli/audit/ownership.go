package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/check"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// reasonSplit is of a finding: a manager cannot remove what it applied.
const reasonSplit = "SplitOwnership"

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
func auditOwnership(ctx context.Context, list source.Lister, namespace string) ([]check.AuditPart, []show.Finding, error) {
	var out []show.Finding

	seen, missing := check.AuditPart{Kind: workloadKind}, 0

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
			out = append(out, splits(obj, w.within)...)
		}
	}

	if missing == len(workloads) {
		return nil, nil, source.ErrNotInstalled
	}

	return []check.AuditPart{seen}, out, nil
}

// splits finds what each manager could not remove. Of most objects the entries
// alone tell that there is nothing: nobody applies, or nobody else is there.
func splits(obj map[string]any, within []fields.Scope) []show.Finding {
	entries, _ := fields.Read(obj) // what cannot be read holds nothing back
	entries = slices.DeleteFunc(entries.Merge(), func(e fields.Entry) bool { return e.Subresource != "" })
	applies := func(e fields.Entry) bool { return e.Operation == fields.Apply }

	if len(entries) < 2 || !slices.ContainsFunc(entries, applies) {
		return nil
	}

	var out []show.Finding

	tree := fields.New(obj, entries)

	for _, e := range entries {
		for _, scope := range within {
			if applies(e) && e.Fields != nil {
				out = append(out, splitsOf(identity.RefOf(obj), tree, scope, e.Manager)...)
			}
		}
	}

	return out
}

// splitsOf finds the items of a scope that a manager could not remove.
func splitsOf(ref identity.Ref, tree *fields.Tree, within fields.Scope, manager string) []show.Finding {
	var out []show.Finding

	for _, r := range tree.Removals(manager, nil, owners.Outside(tree, []fields.Scope{within}, manager)) {
		if isSplit(r, within) {
			out = append(out, splitFinding(ref, r, manager))
		}
	}

	return out
}

// isSplit says whether an item is held back by others. Something that stays
// because another manager applies all of it is shared, as server-side apply
// means it: each of them can be asked. An update is not taken back.
func isSplit(r fields.Removal, within fields.Scope) bool {
	if !within.Matches(r.Path) || r.Path[len(r.Path)-1].FieldName != nil || len(r.Because) == 0 {
		return false
	}

	return r.Fate == fields.Partial ||
		r.Fate == fields.Kept && slices.ContainsFunc(r.Because, func(h fields.Holder) bool { return h.Operation == fields.Update })
}

func splitFinding(ref identity.Ref, r fields.Removal, manager string) show.Finding {
	const most = 3

	var names []string

	blocked := &show.Blocked{Manager: manager, Fate: r.Fate}
	for _, h := range r.Because {
		names = append(names, h.String())
		blocked.By = append(blocked.By, h.Identity)
	}

	who, path := strings.Join(names, " and "), fields.FormatPath(r.Path)
	message := fmt.Sprintf("%s applies it and cannot remove it: it would stay, because of %s", manager, who)

	if goes := owners.Below(r.Path, r.Goes); r.Fate == fields.Partial {
		if more := len(goes) - most; more > 0 {
			goes = append(goes[:most:most], fmt.Sprintf("%d more", more))
		}

		message = fmt.Sprintf("%s applies it and cannot remove it: only %s would go, and the rest stay, because of %s; the server refuses that if anything that goes is required",
			manager, strings.Join(goes, ", "), who)
	}

	return show.Finding{
		Severity: show.SeverityWarning, Object: ref, Reason: reasonSplit, Field: path, Message: message, Blocked: blocked,
		Fix: fmt.Sprintf("see arbor fields plan %s/%s%s --scope '%s' --to %s", strings.ToLower(ref.Kind), ref.Name, inNamespace(ref), path, manager),
	}
}

// inNamespace is the flag that says where an object is.
func inNamespace(ref identity.Ref) string {
	if ref.Namespace == "" {
		return ""
	}

	return " -n " + ref.Namespace
}
