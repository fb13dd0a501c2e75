package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/engine/fields"
)

// container is a Deployment with one container, and entries as they are
// written.
func container(t *testing.T, entries string) map[string]any {
	t.Helper()

	obj := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "image": "web:1", "imagePullPolicy": "Always", "command": []any{"sh"}},
		}}}},
	}

	var list []any
	if err := yaml.Unmarshal([]byte(entries), &list); err != nil {
		t.Fatal(err)
	}

	obj["metadata"].(map[string]any)["managedFields"] = list

	return obj
}

// held is an entry that holds fields of the container.
func held(manager, operation, fields string) string {
	return `- {manager: ` + manager + `, operation: ` + operation + `, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1:
    {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': ` + fields + `}}}}}}
`
}

const (
	wholeContainer = `{".": {}, "f:name": {}, "f:image": {}, "f:command": {}}`
	keyAndCommand  = `{".": {}, "f:name": {}, "f:command": {}}`
	keyAndImage    = `{".": {}, "f:name": {}, "f:image": {}}`
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
		want    result
	}{
		"Refused": {
			reason:  "one applies the image, and another wrote the rest",
			entries: held("eno", "Apply", keyAndImage) + held("legacy", "Update", keyAndCommand),
			want: result{ErrOut: found, Out: head + row + "eno applies it and cannot remove it: only image would go, and the rest stay, " +
				"because of legacy (Update apps/v1); the server refuses that if anything that goes is required" + fix + blocks + "1         0\n"},
		},
		"Silent": {
			reason:  "another wrote all of it: it would stay, and nothing would be said",
			entries: held("eno", "Apply", keyAndImage) + held("legacy", "Update", wholeContainer),
			want:    result{ErrOut: found, Out: head + row + "eno applies it and cannot remove it: it would stay, because of legacy (Update apps/v1)" + fix + blocks + "0         1\n"},
		},
		"SetImage": {
			reason:  "who holds neither the item nor its key holds nothing back",
			entries: held("eno", "Apply", keyAndCommand) + held("kubectl-set", "Update", `{"f:image": {}}`),
			want:    result{ErrOut: quiet},
		},
		"Shared": {
			reason:  "two who both apply all of it share it on purpose",
			entries: held("eno", "Apply", wholeContainer) + held("flux", "Apply", wholeContainer),
			want:    result{ErrOut: quiet},
		},
		"Updates":    {reason: "nobody applies: kubectl apply keeps its own record", entries: held("kubectl-client-side-apply", "Update", wholeContainer) + held("kubectl-set", "Update", `{"f:image": {}}`), want: result{ErrOut: quiet}},
		"Sole":       {reason: "defaults that nobody owns go with what they are in", entries: held("eno", "Apply", keyAndImage), want: result{ErrOut: quiet}},
		"Elsewhere":  {reason: "others may have other fields", entries: held("eno", "Apply", wholeContainer) + `- {manager: hpa, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}`, want: result{ErrOut: quiet}},
		"Status":     {reason: "what is written through a subresource does not count", entries: held("eno", "Apply", wholeContainer) + `- {manager: kube-controller-manager, operation: Update, subresource: status, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}}}}`, want: result{ErrOut: quiet}},
		"NoEntries":  {reason: "nothing is known of it", entries: "[]", want: result{ErrOut: quiet}},
		"BadEntries": {reason: "what cannot be read holds nothing back", entries: `[{manager: a, fieldsV1: 1}, 2]`, want: result{ErrOut: quiet}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, auditOf(holding(container(t, tc.entries))), "")
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
	finding := func(object, manager string, fate fields.Fate, by ...string) Finding {
		b := &Blocked{Manager: manager, Fate: fate}
		for _, name := range by {
			b.By = append(b.By, update(name))
		}

		return Finding{Object: ObjectRef{Name: object}, Blocked: b}
	}

	tests := map[string]struct {
		reason string
		all    []Finding
		want   []Block
	}{
		"None":  {reason: "other findings do not count", all: []Finding{{Object: ObjectRef{Name: "a"}}}, want: []Block{}},
		"Items": {reason: "a workload counts once, however many of its containers are held back", all: []Finding{finding("a", "eno", fields.Kept, "helm"), finding("a", "eno", fields.Partial, "helm")}, want: []Block{{Manager: "eno", By: update("helm"), Workloads: 1, Partial: 1, Kept: 1}}},
		"Order": {
			reason: "who blocks most comes first, and each who blocks counts",
			all:    []Finding{finding("a", "eno", fields.Kept, "helm", "kubectl"), finding("b", "eno", fields.Kept, "kubectl"), finding("c", "argo", fields.Kept, "helm")},
			want: []Block{
				{Manager: "eno", By: update("kubectl"), Workloads: 2, Kept: 2},
				{Manager: "argo", By: update("helm"), Workloads: 1, Kept: 1},
				{Manager: "eno", By: update("helm"), Workloads: 1, Kept: 1},
			},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, blocksOf(tc.all)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
