package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

func TestAuditOwnership(t *testing.T) {
	const (
		head   = "KIND         NAMESPACE   NAME   REASON           FIELD                                     PROBLEM\n"
		row    = "Deployment   shop        web    SplitOwnership   spec.template.spec.containers[name=web]   "
		found  = "0 errors, 1 warning in 0 PodGroups, 0 SubnetPools, 0 Subnets, 0 SubnetClaims, 0 SubnetPoolClaims, 1 Workload\n"
		quiet  = "no problems in 0 PodGroups, 0 SubnetPools, 0 Subnets, 0 SubnetClaims, 0 SubnetPoolClaims, 1 Workload\n"
		fix    = " (see arbor fields plan deployment/web -n shop --scope 'spec.template.spec.containers[name=web]' --to eno)\n"
		blocks = "\nBLOCKED   BY                        WORKLOADS   PARTIAL   STAY\neno       legacy (Update apps/v1)   1           "
	)

	tests := map[string]struct {
		reason  string
		entries string
		want    clitest.Result
	}{
		"Refused": {
			reason:  "one applies the image, and another wrote the rest",
			entries: clitest.Held("eno", "Apply", clitest.KeyAndImage) + clitest.Held("legacy", "Update", clitest.KeyAndCommand),
			want: clitest.Result{ErrOut: found, Out: head + row + "eno applies it and cannot remove it: only image would go, and the rest stay, " +
				"because of legacy (Update apps/v1); the server refuses that if anything that goes is required" + fix + blocks + "1         0\n"},
		},
		"Silent": {
			reason:  "another wrote all of it: it would stay, and nothing would be said",
			entries: clitest.Held("eno", "Apply", clitest.KeyAndImage) + clitest.Held("legacy", "Update", clitest.WholeContainer),
			want:    clitest.Result{ErrOut: found, Out: head + row + "eno applies it and cannot remove it: it would stay, because of legacy (Update apps/v1)" + fix + blocks + "0         1\n"},
		},
		"SetImage": {
			reason:  "who holds neither the item nor its key holds nothing back",
			entries: clitest.Held("eno", "Apply", clitest.KeyAndCommand) + clitest.Held("kubectl-set", "Update", `{"f:image": {}}`),
			want:    clitest.Result{ErrOut: quiet},
		},
		"Shared": {
			reason:  "two who both apply all of it share it on purpose",
			entries: clitest.Held("eno", "Apply", clitest.WholeContainer) + clitest.Held("flux", "Apply", clitest.WholeContainer),
			want:    clitest.Result{ErrOut: quiet},
		},
		"Updates":    {reason: "nobody applies: kubectl apply keeps its own record", entries: clitest.Held("kubectl-client-side-apply", "Update", clitest.WholeContainer) + clitest.Held("kubectl-set", "Update", `{"f:image": {}}`), want: clitest.Result{ErrOut: quiet}},
		"Sole":       {reason: "defaults that nobody owns go with what they are in", entries: clitest.Held("eno", "Apply", clitest.KeyAndImage), want: clitest.Result{ErrOut: quiet}},
		"Elsewhere":  {reason: "others may have other fields", entries: clitest.Held("eno", "Apply", clitest.WholeContainer) + `- {manager: hpa, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}`, want: clitest.Result{ErrOut: quiet}},
		"Status":     {reason: "what is written through a subresource does not count", entries: clitest.Held("eno", "Apply", clitest.WholeContainer) + `- {manager: kube-controller-manager, operation: Update, subresource: status, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}}}}`, want: clitest.Result{ErrOut: quiet}},
		"NoEntries":  {reason: "nothing is known of it", entries: "[]", want: clitest.Result{ErrOut: quiet}},
		"BadEntries": {reason: "what cannot be read holds nothing back", entries: `[{manager: a, fieldsV1: 1}, 2]`, want: clitest.Result{ErrOut: quiet}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := clitest.Run(t, auditOf(clitest.Holding(clitest.Container(t, tc.entries))), "")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	update := func(name string) fields.Identity {
		return fields.Identity{Manager: name, Operation: fields.Update, APIVersion: "apps/v1"}
	}
	finding := func(object, manager string, fate fields.Fate, by ...string) show.Finding {
		b := &show.Blocked{Manager: manager, Fate: fate}
		for _, name := range by {
			b.By = append(b.By, update(name))
		}

		return show.Finding{Object: identity.Ref{Name: object}, Blocked: b}
	}

	tests := map[string]struct {
		reason string
		all    []show.Finding
		want   []owners.Block
	}{
		"None":  {reason: "other findings do not count", all: []show.Finding{{Object: identity.Ref{Name: "a"}}}, want: []owners.Block{}},
		"Items": {reason: "a workload counts once, however many of its containers are held back", all: []show.Finding{finding("a", "eno", fields.Kept, "helm"), finding("a", "eno", fields.Partial, "helm")}, want: []owners.Block{{Manager: "eno", By: update("helm"), Workloads: 1, Partial: 1, Kept: 1}}},
		"Order": {
			reason: "who blocks most comes first, and each who blocks counts",
			all:    []show.Finding{finding("a", "eno", fields.Kept, "helm", "kubectl"), finding("b", "eno", fields.Kept, "kubectl"), finding("c", "argo", fields.Kept, "helm")},
			want: []owners.Block{
				{Manager: "eno", By: update("kubectl"), Workloads: 2, Kept: 2},
				{Manager: "argo", By: update("helm"), Workloads: 1, Kept: 1},
				{Manager: "eno", By: update("helm"), Workloads: 1, Kept: 1},
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, owners.BlocksOf(tc.all)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
