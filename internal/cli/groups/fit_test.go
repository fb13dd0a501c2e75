package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

const (
	twoPodGang   = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n---\n"
	gangTemplate = "metadata: {annotations: {pod-group-name: g}}, spec: {containers: [{name: c, image: i}]}"
)

// seats is a cluster whose nodes have so many seats, and whose pods need one
// each: an Oracle that decides with the scheduler's engine and nothing else.
type seats struct {
	nodes  []string
	free   map[string]int
	groups []*v2alpha2.PodGroup
	pods   []*corev1.Pod
	fails  error
}

func (s *seats) Groups() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, pg := range s.groups {
		keys = append(keys, types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name})
	}

	return keys
}

func (s *seats) Group(key types.NamespacedName) (*v2alpha2.PodGroup, []*corev1.Pod) {
	var found *v2alpha2.PodGroup
	for _, pg := range s.groups {
		if pg.Namespace == key.Namespace && pg.Name == key.Name {
			found = pg
		}
	}
	var pods []*corev1.Pod
	for _, p := range s.pods {
		if of, ok := scheduling.GroupOf(p); ok && of == key {
			pods = append(pods, p)
		}
	}

	return found, pods
}

func (s *seats) Priority(string) (int32, bool) { return 0, true }

func (s *seats) Fit(ctx context.Context, pg *v2alpha2.PodGroup, pods []*corev1.Pod) (*scheduling.Answer, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	g, refusal := scheduling.Read(pg, pods, gang.Rules{})
	if refusal != nil {
		return &scheduling.Answer{Refusal: refusal}, nil
	}
	w := &seatWorld{seats: s}
	d, err := gang.Place(ctx, g.Tree, g.Members, w, gang.Rules{})
	w.Rollback(0)
	a := &scheduling.Answer{Gang: g, Decision: d, For: -1}
	for i, m := range g.Members {
		if m.State == gang.Waiting && !slices.ContainsFunc(d.Places, func(p gang.Placement) bool { return p.Member == i }) && a.For < 0 {
			a.For = i
		}
	}
	for _, n := range s.nodes {
		r := scheduling.Room{Node: n, Fits: s.free[n]}
		if r.Fits == 0 {
			r.Short = []scheduling.Shortage{{Resource: "cpu", Asked: 1500, Free: 500, Allocatable: 2000}, {Resource: "memory", Asked: 3 << 30, Free: 1 << 30, Allocatable: 1 << 30}}
			r.Reasons = []string{"too cold"}
		}
		a.Rooms = append(a.Rooms, r)
	}

	return a, err
}

type seatWorld struct {
	*seats

	held []string
}

func (w *seatWorld) Try(context.Context, int) (string, *gang.Misfit, error) {
	for _, n := range w.nodes {
		if w.free[n] > 0 {
			w.free[n]--
			w.held = append(w.held, n)

			return n, nil, nil
		}
	}

	return "", &gang.Misfit{Nodes: len(w.nodes), Reasons: map[string]int{"no seat": len(w.nodes)}}, nil
}

func (w *seatWorld) Mark() int { return len(w.held) }

func (w *seatWorld) Rollback(mark int) {
	for _, n := range w.held[mark:] {
		w.free[n]++
	}
	w.held = w.held[:mark]
}

// asking is the command with an oracle in place of a cluster.
func asking(s *seats) func(genericiooptions.IOStreams) *cobra.Command {
	return func(streams genericiooptions.IOStreams) *cobra.Command {
		return New(streams, source.Connect, Scheduling{
			Open: func(_ context.Context, _ *rest.Config, minimums, _ string) (Oracle, error) {
				if minimums != "arbor" {
					return nil, errors.New("minimums are " + minimums)
				}

				return s, nil
			},
			Offline: func([]unstructured.Unstructured) (*rest.Config, error) { return &rest.Config{}, nil },
			Kinds:   func() []schema.GroupVersionResource { return nil },
			Knows:   func(gvk schema.GroupVersionKind) bool { return gvk.Kind == "Node" },
		})
	}
}

func twoNodes() *seats {
	return &seats{nodes: []string{"x", "y"}, free: map[string]int{"x": 2, "y": 1}}
}

func gangFile(minimum, pods int) string {
	return strings.Replace(twoPodGang, "minMember: 2", fmt.Sprintf("minMember: %d", minimum), 1) +
		fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: %d, template: {%s}}}\n", pods, gangTemplate)
}

const (
	aNode   = "apiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: x}}\nkind: List\n"
	noRoom  = "room for 3 of min 4 pods: 0/2 nodes are available: 2 no seat."
	noSeats = "NODE   FITS   SHORT OF\nx      2\ny      1\n"
)

func TestGroupsFit(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	cases := map[string]struct {
		reason string
		world  *seats
		stdin  string
		files  map[string]string
		args   []string
		want   clitest.Result
	}{
		"Fits": {
			reason: "a gang that fits has nodes", stdin: gangFile(2, 3),
			want: clitest.Result{Out: "PodGroup default/g fits: 3 of 3 pods get a place\n\nSUBGROUP   MIN   PODS   PLACED   STATE   NODES\n(g)        2     3      3        fits    x (2), y (1)\n"},
		},
		"Wide": {
			reason: "each pod, if it is wanted", stdin: gangFile(1, 1), args: []string{"-o", "wide"},
			want: clitest.Result{Out: "PodGroup default/g fits: 1 of 1 pods get a place\n\nSUBGROUP   MIN   PODS   PLACED   STATE   NODES\n(g)        1     1      1        fits    x (1)\n\nPOD   SUBGROUP   NODE\nj-0              x\n"},
		},
		"DoesNot": {
			reason: "one that does not says why, and what nodes have", stdin: gangFile(4, 4),
			want: clitest.Result{Code: command.ExitFound, Out: "PodGroup default/g does not fit: " + noRoom + "\n\nSUBGROUP   MIN   PODS   PLACED   STATE        NODES\n(g)        4     4      0        room for 3\n\nNodes as pod j-0 sees them, before others of the group:\n" + noSeats},
		},
		"More": {
			reason: "some of the pods may stay without", stdin: gangFile(2, 4),
			want: clitest.Result{Out: "PodGroup default/g fits: 3 of 4 pods get a place\n\nSUBGROUP   MIN   PODS   PLACED   STATE   NODES\n(g)        2     4      3        fits    x (2), y (1)\n\nNodes as pod j-3 sees them, before others of the group:\n" + noSeats},
		},
		"TooFew": {
			reason: "pods may be too few", stdin: gangFile(3, 1),
			want: clitest.Result{Code: command.ExitFound, Out: "PodGroup default/g does not fit: it has 1 of min 3 pods\n\nSUBGROUP   MIN   PODS   PLACED   STATE          NODES\n(g)        3     1      0        too few pods\n"},
		},
		"Several": {
			reason: "each group is alone", stdin: gangFile(2, 3) + "---\n" + strings.NewReplacer("name: g}", "name: h}", "name: j}", "name: k}").Replace(gangFile(4, 4)), args: []string{"-o", "json"},
			want: clitest.Result{Code: command.ExitFound},
		},
		"Refused": {
			reason: "a group may be wrong", stdin: strings.Replace(gangFile(2, 1), "pod-group-name: g", "pod-group-name: g}, labels: {kai.scheduler/subgroup-name: z", 1),
			want: clitest.Result{Code: command.ExitFound, Out: "PodGroup default/g does not fit: pod \"j-0\" names the subgroup \"z\", but PodGroup \"g\" has no subgroups: remove its label kai.scheduler/subgroup-name\n"},
		},
		"NoPods": {
			reason: "a group without pods cannot be asked about", stdin: twoPodGang,
			want: clitest.Result{Code: command.ExitBlind, Err: "PodGroup default/g has no pods, neither in the files nor in the cluster: add them to the file, as Pods, or as a Job or another workload whose template has the annotation pod-group-name: g"},
		},
		"NoGroup": {
			reason: "nor pods without a group", stdin: strings.TrimPrefix(gangFile(1, 1), strings.Replace(twoPodGang, "minMember: 2", "minMember: 1", 1)),
			want: clitest.Result{Code: command.ExitBlind, Err: "Job default/j names PodGroup default/g, which is neither in the files nor in the cluster: add it, or correct the annotation pod-group-name"},
		},
		"Nothing": {reason: "nor nothing", stdin: "a: b", want: clitest.Result{Code: command.ExitBlind, Err: "the files hold no PodGroup, and no pods that name one with the annotation pod-group-name"}},
		"BadFile": {reason: "nor what cannot be read", stdin: "}", want: clitest.Result{Code: command.ExitBlind, ErrOut: "<stdin>:1: error: invalid YAML: did not find expected node content\n"}},
		"BadPod": {
			reason: "what is wrong is one sentence", stdin: "{apiVersion: v1, kind: Pod}",
			want: clitest.Result{Code: command.ExitBlind, Err: "a Pod in namespace default has no name: set metadata.name"},
		},
		"Fails":    {reason: "the oracle may not know", world: &seats{fails: errors.New("it is dark")}, stdin: gangFile(1, 1), want: clitest.Result{Code: command.ExitBlind, Err: "PodGroup default/g: it is dark"}},
		"Minimums": {reason: "minimums are read as is asked for", stdin: gangFile(1, 1), args: []string{"--minimums", "kai"}, want: clitest.Result{Code: command.ExitBlind, Err: "minimums are kai"}},
		"Format":   {reason: "formats are known by name", args: []string{"-o", "dot"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown output format "dot": use one of table, wide, name, json, yaml, jsonpath=TEMPLATE`}},
		"BothIn":   {reason: "there is one standard input", args: []string{"--from", "-"}, want: clitest.Result{Code: command.ExitBlind, Err: "standard input can be read once: give either --from or -f a file"}},
		"Truncated": {
			reason: "a dump that ends too early is none", stdin: gangFile(1, 1), files: map[string]string{"d.yaml": strings.TrimSuffix(aNode, "kind: List\n")},
			want: clitest.Result{Code: command.ExitBlind, Err: "the dump d.yaml is cut off: it does not end with kind: List; write it again with 'arbor groups dump'"},
		},
		"BrokenDump": {
			reason: "nor one that cannot be read", stdin: gangFile(1, 1), files: map[string]string{"d.yaml": "{"},
			want: clitest.Result{Code: command.ExitBlind, Err: "the dump cannot be used: d.yaml:1: error: invalid YAML: did not find expected node content"},
		},
		"EmptyDump": {
			reason: "nor an empty one", stdin: gangFile(1, 1), files: map[string]string{"d.yaml": ""},
			want: clitest.Result{Code: command.ExitBlind, Err: "the dump d.yaml holds nothing that scheduling looks at: write one with 'arbor groups dump'"},
		},
		"OtherKinds": {
			reason: "what else is in it does not matter", stdin: gangFile(1, 1), files: map[string]string{"d.yaml": aNode + "---\n{apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\na: b\n"},
			want: clitest.Result{
				Out:    "PodGroup default/g fits: 1 of 1 pods get a place\n\nSUBGROUP   MIN   PODS   PLACED   STATE   NODES\n(g)        1     1      1        fits    x (1)\n",
				ErrOut: "Note: scheduling does not look at all that is in d.yaml: left out are 1 without a kind, 1 Secret\n",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clitest.Folder(t, map[string]string{"d.yaml": cmp.Or(tc.files["d.yaml"], aNode)})
			if text, ok := tc.files["d.yaml"]; ok {
				clitest.Folder(t, map[string]string{"d.yaml": text})
			}
			args := append([]string{"fit", "-f", "-"}, tc.args...)
			if !slices.Contains(tc.args, "--from") {
				args = append(args, "--from", "d.yaml")
			}
			got := clitest.Run(t, asking(cmp.Or(tc.world, twoNodes())), tc.stdin, args...)
			if slices.Contains(tc.args, "json") {
				if strings.Count(got.Out, `"fits": true`) != 1 || strings.Count(got.Out, `"fits": false`) != 1 {
					t.Errorf("%s: got %s", tc.reason, got.Out)
				}
				got.Out = ""
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if r := clitest.Run(t, asking(twoNodes()), "", "fit"); r.Code != command.ExitBlind || !strings.HasPrefix(r.Err, "no file to ask about: name one with -f") {
		t.Errorf("without a file: %+v", r)
	}
	if r := clitest.Run(t, asking(twoNodes()), gangFile(1, 1), "fit", "-f", "-", "--kubeconfig", "/nonexistent"); r.Code != command.ExitBlind || !strings.HasPrefix(r.Err, "cannot read the kubeconfig") {
		t.Errorf("without a cluster: %+v", r)
	}
}

func TestGroupsExplain(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	clitest.Folder(t, map[string]string{"d.yaml": aNode})
	group := func(namespace, name string, minimum int32, conditions ...v2alpha2.PodGroupCondition) *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v2alpha2.PodGroupSpec{MinMember: &minimum},
			Status: v2alpha2.PodGroupStatus{Conditions: conditions},
		}
	}
	pods := func(namespace, group, node string, n int) []*corev1.Pod {
		var all []*corev1.Pod
		for i := range n {
			all = append(all, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", group, i), Annotations: map[string]string{scheduling.GroupAnnotation: group}},
				Spec:       corev1.PodSpec{NodeName: node},
			})
		}

		return all
	}
	says := func(status metav1.ConditionStatus, reason, message string) v2alpha2.PodGroupCondition {
		return v2alpha2.PodGroupCondition{Type: v2alpha2.PodGroupScheduled, Status: status, Reason: reason, Message: message}
	}
	w := twoNodes()
	w.free["y"] = 0
	w.groups = []*v2alpha2.PodGroup{
		group("default", "runs", 1, says("True", "Scheduled", "every minimum is met")),
		group("default", "waits", 3, says("False", "Unschedulable", "room for 2 of min 3 pods: 0/2 nodes are available: 2 no seat.")),
		group("other", "could", 1, says("False", "Unschedulable", "it was full")),
		group("other", "new", 9),
		group("volumes", "binds", 1, says("False", "Binding", "pod waits")),
	}
	w.groups[0].Status.Placed = new(int32(2))
	w.pods = slices.Concat(pods("default", "runs", "z", 2), pods("default", "waits", "", 3), pods("other", "could", "", 1), pods("other", "new", "", 1), pods("volumes", "binds", "", 1), pods("default", "lost", "", 2))

	runs := "PodGroup default/runs has its minimum: 2 of 2 pods have a place\n  condition Scheduled: True, Scheduled: every minimum is met\n  placed, as the scheduler counts: 2\n\nSUBGROUP   MIN   PODS   PLACED   STATE    NODES\n(runs)     1     2      2        placed   z (2)\n"
	waits := "PodGroup default/waits waits: room for 2 of min 3 pods: 0/2 nodes are available: 2 no seat.\n  condition Scheduled: False, Unschedulable\n\nSUBGROUP   MIN   PODS   PLACED   STATE        NODES\n(waits)    3     3      0        room for 2\n" +
		"\nNodes as pod waits-0 sees them, before others of the group:\nNODE   FITS   SHORT OF\nx      2\ny      0      1 cpu (1500m asked, 500m free); 2Gi memory (3Gi asked, 1Gi free); too cold\n"
	could := "PodGroup other/could would fit now: 1 of 1 pods get a place\n  condition Scheduled: False, Unschedulable: it was full\n  the scheduler will see this when it tries again; room that it holds for groups with reason Binding counts as free here\n\nSUBGROUP   MIN   PODS   PLACED   STATE   NODES\n(could)    1     1      1        fits    x (1)\n"
	cases := map[string]struct {
		reason string
		args   []string
		want   clitest.Result
	}{
		"Runs":      {reason: "where its pods are", args: []string{"runs"}, want: clitest.Result{Out: runs}},
		"Waits":     {reason: "why it waits", args: []string{"podgroup/waits"}, want: clitest.Result{Code: command.ExitFound, Out: waits}},
		"Namespace": {reason: "all of a namespace", want: clitest.Result{Code: command.ExitFound, Out: runs + "\n" + waits}},
		"Could":     {reason: "the scheduler may be behind", args: []string{"could", "-A"}, want: clitest.Result{Code: command.ExitFound, Out: could}},
		"Binding": {reason: "its volume is not ready", args: []string{"binds", "-n", "volumes"}, want: clitest.Result{
			Code: command.ExitFound,
			Out:  "PodGroup volumes/binds is being bound: 1 of 1 pods get a place\n  condition Scheduled: False, Binding: pod waits\n\nSUBGROUP   MIN   PODS   PLACED   STATE   NODES\n(binds)    1     1      1        fits    x (1)\n",
		}},
		"NotFound": {reason: "a name that is not there", args: []string{"x"}, want: clitest.Result{Code: command.ExitBlind, Err: `pod group "x" was not found in default namespace: look in another namespace with -n, or in all of them with -A`}},
		"Lost":     {reason: "pods may wait for a group that does not exist", args: []string{"lost"}, want: clitest.Result{Code: command.ExitFound, Err: "PodGroup default/lost does not exist, and 2 pods wait for it: create it, or remove their annotation pod-group-name"}},
		"None":     {reason: "there may be none", args: []string{"-n", "empty"}, want: clitest.Result{ErrOut: "No pod groups found in empty namespace.\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.Run(t, asking(w), "", append([]string{"explain", "--from", "d.yaml"}, tc.args...)...)
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if r := clitest.Run(t, asking(w), "", "explain", "--from", "d.yaml", "-n", "other", "-o", "yaml"); !strings.Contains(r.Out, "reason: TooFewPods") || !strings.Contains(r.Out, "it has 1 of min 9 pods") || strings.Contains(r.Out, "default") {
		t.Errorf("got %+v", r)
	}
}

// A tree is drawn with its minimums, and what is left out.
func TestPlacesTree(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	clitest.Folder(t, map[string]string{"d.yaml": aNode})
	const text = `apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: g}
spec:
  minMember: 2
  subGroups: [{name: set, minSubGroup: 1}, {name: a, parent: set, minMember: 2}, {name: b, parent: set, minMember: 2}, {name: c, minMember: 0}]
---
`
	pods := func(name string, n int) string {
		return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {parallelism: %d, template: {%s}}}\n---\n", name, n,
			strings.Replace(gangTemplate, "metadata: {", "metadata: {labels: {kai.scheduler/subgroup-name: "+name+"}, ", 1))
	}
	want := `PodGroup default/g fits: 3 of 5 pods get a place

SUBGROUP   MIN                     PODS   PLACED   STATE      NODES
(g)        all subgroups, 2 pods   5      3        fits       x (2), y (1)
  set      1 of 2 subgroups        4      2        fits       x (2)
    a      2                       2      2        fits       x (2)
    b      2                       2      0        left out
  c        0                       1      1        fits       y (1)

Nodes as pod b-0 sees them, before others of the group:
` + noSeats
	got := clitest.Run(t, asking(twoNodes()), text+pods("a", 2)+pods("b", 2)+pods("c", 1), "fit", "-f", "-", "--from", "d.yaml")
	if diff := gocmp.Diff(clitest.Result{Out: want}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
