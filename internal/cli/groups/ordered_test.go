package groups

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/lint"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

// setOf is a StatefulSet whose pods are in the gang, or in a subgroup of it.
func setOf(name, subGroup, policy string, replicas int) string {
	template := gangTemplate
	if subGroup != "" {
		template = strings.Replace(gangTemplate, "metadata: {", "metadata: {labels: {kai.scheduler/subgroup-name: "+subGroup+"}, ", 1)
	}

	return fmt.Sprintf("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: %s}\nspec:\n  replicas: %d\n%s  template: {%s}\n---\n", name, replicas, policy, template)
}

const (
	ordered  = "  podManagementPolicy: OrderedReady\n"
	parallel = "  podManagementPolicy: Parallel\n"
)

func gangOf(spec string) string {
	return "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {" + spec + "}\n---\n"
}

func hintFor(set string, minimum int) string {
	return scheduling.OrderedReadyHint("OrderedReady", set, 1, 2, minimum)
}

// A StatefulSet that creates its pods one by one, and a group that needs more
// than one of them, wait for each other; fit and lint report it.
func TestOrderedReady(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: {" + gangTemplate + "}}}\n---\n"
	two := gangOf("subGroups: [{name: leader}, {name: workers, minMember: 2}]")
	cases := map[string]struct {
		reason string
		text   string
		// set is the StatefulSet that is reported, "" if none is; line and minimum
		// belong to it.
		set           string
		line, minimum int
	}{
		"Default":     {reason: "that is the default", text: gangOf("minMember: 2") + setOf("s", "", "", 2), set: "s", line: 9, minimum: 2},
		"Explicit":    {reason: "the field may say so", text: gangOf("minMember: 2") + setOf("s", "", ordered, 2), set: "s", line: 11, minimum: 2},
		"SetFirst":    {reason: "the order of the documents does not matter", text: setOf("s", "", "", 2) + gangOf("minMember: 2"), set: "s", line: 4, minimum: 2},
		"Parallel":    {reason: "all pods are created at once", text: gangOf("minMember: 2") + setOf("s", "", parallel, 2)},
		"One":         {reason: "one pod is the minimum", text: gangOf("minMember: 1") + setOf("s", "", "", 3)},
		"Single":      {reason: "a StatefulSet of one pod creates all its pods at once", text: gangOf("minMember: 2") + setOf("s", "", "", 1) + setOf("t", "", "", 1)},
		"Others":      {reason: "a Job has the rest of the pods", text: gangOf("minMember: 3") + setOf("s", "", "", 2) + job},
		"Leaf":        {reason: "the StatefulSet of the subgroup that lacks pods is reported", text: two + setOf("l", "leader", "", 2) + setOf("w", "workers", "", 2), set: "w", line: 16, minimum: 2},
		"ParallelOne": {reason: "the other may stay as it is", text: two + setOf("l", "leader", "", 1) + setOf("w", "workers", parallel, 2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clitest.Folder(t, map[string]string{"d.yaml": aNode})
			got := clitest.Run(t, asking(&seats{nodes: []string{"x"}, free: map[string]int{"x": 9}}), tc.text, "fit", "-f", "-", "--from", "d.yaml")
			if tc.set == "" && got.Code != 0 {
				t.Errorf("%s\nfit: got %+v", tc.reason, got)
			}
			want := clitest.Result{Code: command.ExitFound, Out: "PodGroup default/g does not fit: " + hintFor(tc.set, tc.minimum) + "\n"}
			if diff := gocmp.Diff(want, got); tc.set != "" && diff != "" {
				t.Errorf("%s\nfit (-want +got):\n%s", tc.reason, diff)
			}

			var findings []string
			if tc.set != "" {
				findings = []string{fmt.Sprintf("<stdin>:%d: warning: StatefulSet %s: spec.podManagementPolicy: %s (write Parallel)", tc.line, tc.set, hintFor(tc.set, tc.minimum))}
			}
			if diff := gocmp.Diff(findings, clitest.Lines(clitest.Run(t, lint.New, tc.text, "-f", "-").Out)); diff != "" {
				t.Errorf("%s\nlint (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Pods that exist count for fit, and a StatefulSet goes on from there.
func TestOrderedReadyInCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	exists := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1", Annotations: map[string]string{scheduling.GroupAnnotation: "g"}},
			Spec:       corev1.PodSpec{NodeName: node, SchedulerName: corev1.DefaultSchedulerName},
		}
	}
	cases := map[string]struct {
		reason  string
		minimum int
		pods    []*corev1.Pod
		code    int
	}{
		"Waiting":  {reason: "the first pod waits, so there is no second", minimum: 2, pods: []*corev1.Pod{exists("s-0", "")}, code: command.ExitFound},
		"Running":  {reason: "the first pod runs, so the second is created", minimum: 2, pods: []*corev1.Pod{exists("s-0", "x")}},
		"NotThree": {reason: "but not the third", minimum: 3, pods: []*corev1.Pod{exists("s-0", "x")}, code: command.ExitFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clitest.Folder(t, map[string]string{"d.yaml": aNode})
			world := &seats{nodes: []string{"x"}, free: map[string]int{"x": 9}, pods: tc.pods}
			text := gangOf(fmt.Sprintf("minMember: %d", tc.minimum)) + setOf("s", "", "", 3)
			got := clitest.Run(t, asking(world), text, "fit", "-f", "-", "--from", "d.yaml")
			if deadlock := strings.Contains(got.Out, "podManagementPolicy"); got.Code != tc.code || deadlock != (tc.code != 0) {
				t.Errorf("%s\ngot %+v", tc.reason, got)
			}
		})
	}
}
