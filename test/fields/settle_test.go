package fields_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// An interference is a policy that changes what eno applies to a deployment.
type interference struct {
	// when and what it does, as expressions.
	when, mutation string
	// there reports whether it did.
	there func(*unstructured.Unstructured) bool
}

// interfere puts a policy to work in the namespace of the test.
func (w *world) interfere(i interference) {
	w.Helper()
	const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [apps], apiVersions: ["*"], operations: [UPDATE], resources: [deployments]}]
  matchConditions:
  - {name: applied, expression: 'has(object.metadata.labels) && "by" in object.metadata.labels'}
  - {name: chosen, expression: '%[2]s'}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '%[3]s'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`
	for text := range strings.SplitSeq(fmt.Sprintf(policy, w.ns, i.when, i.mutation), "---\n") {
		o := w.object(text)
		o.SetNamespace("")
		must(w.T, w.c.Create(w.Context(), o))
		w.Cleanup(func() { _ = w.c.Delete(context.Background(), o) })
	}
	probe := w.object(web)
	probe.SetName("probe")
	probe.SetLabels(map[string]string{"team": "a", "by": "x"})
	list, _, _ := unstructured.NestedSlice(probe.Object, "spec", "template", "spec", "initContainers")
	must(w.T, unstructured.SetNestedSlice(probe.Object, list[1:], "spec", "template", "spec", "initContainers"))
	must(w.T, w.c.Create(w.Context(), probe))
	n := 0
	cluster.Eventually(w.T, "the policy is at work", func() error {
		n++
		w.merge("prober", probe, fmt.Sprintf(`{metadata: {annotations: {poll: "%d"}}}`, n))
		if !i.there(w.get(probe)) {
			return fmt.Errorf("it is not, by attempt %d", n)
		}

		return nil
	})
}

const (
	always      = "true"
	onlyForReal = "!has(request.dryRun) || !request.dryRun"
)

// putsBack is a policy that has the init container again.
func putsBack(when string) interference {
	return interference{
		when:     "(" + when + `) && !object.spec.template.spec.initContainers.exists(c, c.name == "base-os-bash")`,
		mutation: `[JSONPatch{op: "add", path: "/spec/template/spec/initContainers/-", value: Object.spec.template.spec.initContainers{name: "base-os-bash", image: "base:1"}}]`,
		there:    func(o *unstructured.Unstructured) bool { return len(names(o, initContainers)) == 2 },
	}
}

// TestUnsettled has admission see to it that an apply does not do what it should.
func TestUnsettled(t *testing.T) {
	unlabel := func(when string) interference {
		return interference{
			when: when + ` && "team" in object.metadata.labels`, mutation: `[JSONPatch{op: "remove", path: "/metadata/labels/team"}]`,
			there: func(o *unstructured.Unstructured) bool { return o.GetLabels()["team"] == "" },
		}
	}
	rescale := func(when string) interference {
		return interference{
			when: when, mutation: `[JSONPatch{op: "replace", path: "/spec/replicas", value: 2}]`,
			there: func(o *unstructured.Unstructured) bool {
				n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")

				return n == 2
			},
		}
	}
	cases := map[string]struct {
		reason string
		policy interference
		// says is in the error, and applied whether it comes too late.
		says    string
		applied bool
	}{
		"PutBack": {
			reason: "A dry run shows that the item stays, so that nothing is done.", policy: putsBack(always),
			says: "initContainers[name=base-os-bash] of Deployment",
		},
		"PutBackForReal": {
			reason: "Who acts only if it counts is found out when it is done. What was moved is gone by then, or the manager's own, and is not put back.",
			policy: putsBack(onlyForReal), says: "nobody holds it", applied: true,
		},
		"OthersLose": {
			reason: "A label of another manager would go.", policy: unlabel(always),
			says: "metadata.labels.team of Deployment",
		},
		"OthersLoseForReal": {
			reason: "A label of another manager went.", policy: unlabel(onlyForReal),
			says: "is gone, which " + legacy, applied: true,
		},
		"OthersChangeForReal": {
			reason: "A value of another manager is not what it was, nor the result of the dry run.", policy: rescale(onlyForReal),
			says: "spec.replicas of Deployment", applied: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.seed()
			w.interfere(tc.policy)
			kept := keep(t)
			m := ownership.New(w.c, ownership.Options{Journal: kept})
			result, err := m.Migrate(t.Context(), ownership.Request{Desired: w.object(dropped)})
			if ownership.ReasonOf(err) != ownership.Unsettled || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%s\nit says %v", tc.reason, err)
			}
			if result.Applied != tc.applied || result.Restored == tc.applied || result.Migrated != tc.applied || len(result.Records) != 1 {
				t.Errorf("%s\nit says %+v", tc.reason, result)
			}
			after := w.get(before)
			if tc.applied {
				w.lostOnlyItem(before, after)
				if all := w.records(kept); len(all) != 1 {
					t.Errorf("%s\nrecords are %+v", tc.reason, all)
				}

				return
			}
			if diff := cmp.Diff(content(before), content(after)); diff != "" || !fields.Equal(w.entries(before), w.entries(after)) {
				t.Errorf("%s\nit is not as it was: -before, +after:\n%s%s", tc.reason, diff, cmp.Diff(w.held(before), w.held(after)))
			}
		})
	}
}

// TestUnsettledForGood has the same policy against every attempt. That is not
// tried without end.
func TestUnsettledForGood(t *testing.T) {
	w := newWorld(t)
	o := w.seed()
	w.interfere(putsBack(always))
	m := ownership.New(w.c, ownership.Options{MaxRounds: 2})
	for range 2 {
		if _, err := m.Migrate(t.Context(), ownership.Request{Desired: w.object(dropped)}); ownership.ReasonOf(err) != ownership.Unsettled {
			t.Errorf("it reports %v", err)
		}
	}
	before := w.get(o)
	for range 3 {
		if _, err := m.Migrate(t.Context(), ownership.Request{Desired: w.object(dropped)}); !apierrors.IsInvalid(err) {
			t.Errorf("in the end it reports %v", err)
		}
	}
	w.unchanged(before)
}

// TestSettled has policies that change something in passing which is owned by no manager
// business here.
func TestSettled(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy interference
	}{
		"Annotated": {
			reason: "What admission adds belongs to no manager, and takes nothing from any manager.",
			policy: interference{
				when: always, mutation: `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"seen": "yes"}}]`,
				there: func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["seen"] != "" },
			},
		},
		"Relabelled": {
			reason: "A value that admission changes each time, and that is still the same one's, is what the cluster wants.",
			policy: interference{
				when: always, mutation: `[JSONPatch{op: "replace", path: "/metadata/labels/team", value: "b"}]`,
				there: func(o *unstructured.Unstructured) bool { return o.GetLabels()["team"] == "b" },
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.seed()
			w.interfere(tc.policy)
			w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(dropped)})
			after := w.get(before)
			if diff := cmp.Diff([]string{"other"}, names(after, initContainers)); diff != "" || !tc.policy.there(after) {
				t.Errorf("%s\ninit containers: -want, +got:\n%s", tc.reason, diff)
			}
			w.lostOnlyItem(before, after)
		})
	}
}
