package gangdraft

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/manifest"
)

const (
	gangHead = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n---\n"
	inGang   = "metadata: {annotations: {pod-group-name: g}}, spec: {containers: [{name: c, image: i}]}"
)

// drafting adds the objects of a text, as if it were now the 10th second.
func drafting(t *testing.T, text string) (d *Drafter, notes []string, err error) {
	t.Helper()
	d = &Drafter{
		Namespace: "ns", Now: metav1.NewTime(time.Unix(10, 0)),
		Priority: func(class string) (int32, bool) { return map[string]int32{"": 5, "high": 100}[class], class != "none" },
		Notef:    func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) },
	}
	f := manifest.Parse("a.yaml", []byte(text))
	if len(f.Errors) > 0 {
		t.Fatal(f.Errors[0])
	}
	var objects []map[string]any
	for _, doc := range f.Documents {
		objects = append(objects, doc.Object)
	}
	if err := d.AddAll(objects); err != nil {
		return d, notes, err
	}
	d.LeftOut()

	return d, notes, nil
}

func TestDrafts(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		// want has the pods of each group.
		want  map[string][]string
		notes []string
		err   string
	}{
		"Pods": {
			reason: "pods join the group that they name, in their namespace", text: gangHead + "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {pod-group-name: g}}}\n---\n" +
				"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: other, annotations: {pod-group-name: g}}}",
			want: map[string][]string{"ns/g": {"a"}, "other/g": {"a"}},
		},
		"GenerateName": {reason: "a name may be made", text: "{apiVersion: v1, kind: Pod, metadata: {generateName: a-, annotations: {pod-group-name: g}}}", want: map[string][]string{"ns/g": {"a-0"}}},
		"Job":          {reason: "a Job has one pod", text: "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {" + inGang + "}}}", want: map[string][]string{"ns/g": {"j-0"}}},
		"Parallelism":  {reason: "or several", text: "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: {" + inGang + "}}}", want: map[string][]string{"ns/g": {"j-0", "j-1"}}},
		"Completions":  {reason: "and no more than it needs", text: "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 5, completions: 2, template: {" + inGang + "}}}", want: map[string][]string{"ns/g": {"j-0", "j-1"}}},
		"CronJob":      {reason: "a CronJob makes such Jobs", text: "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {parallelism: 2, template: {" + inGang + "}}}}}", want: map[string][]string{"ns/g": {"j-0", "j-1"}}},
		"Replicas":     {reason: "anything with a template has replicas", text: "{apiVersion: x/v1, kind: Whatever, metadata: {name: w}, spec: {replicas: 3, template: {" + inGang + "}}}", want: map[string][]string{"ns/g": {"w-0", "w-1", "w-2"}}},
		"None":         {reason: "also none", text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 0, template: {" + inGang + "}}}", want: map[string][]string{"ns/g": nil}},
		"Others": {
			reason: "what has no pods is nobody's business, and pods without a group are named",
			text:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n---\n{apiVersion: x/v1, kind: T, spec: {template: {spec: {}}}}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {template: {spec: {containers: [{name: c}]}}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}}",
			want:   map[string][]string{}, notes: []string{"pods that name no PodGroup are left out, those of Deployment ns/w, Pod ns/p; to count, they need the annotation pod-group-name"},
		},
		"Class": {
			reason: "a class that is not there is told", text: "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {pod-group-name: g}}, spec: {priorityClassName: none}}",
			want: map[string][]string{"ns/g": {"a"}}, notes: []string{`Pod ns/a: there is no PriorityClass "none", so its pods have the priority 0 here; the API server would refuse them`},
		},
		"ClassOnce": {
			reason: "and once is enough", text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 2, template: {metadata: {annotations: {pod-group-name: g}}, spec: {priorityClassName: none, containers: [{name: c}]}}}}",
			want: map[string][]string{"ns/g": {"w-0", "w-1"}}, notes: []string{`Deployment ns/w: there is no PriorityClass "none", so its pods have the priority 0 here; the API server would refuse them`},
		},
		"ClassBeside": {
			reason: "one in the same file is there", text: "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {pod-group-name: g}}, spec: {priorityClassName: none}}\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: none}, value: 7}",
			want: map[string][]string{"ns/g": {"a"}},
		},
		"Twice":     {reason: "a group is there once", text: gangHead + gangHead, err: "PodGroup ns/g is there twice: remove or rename one of the two"},
		"BadGroup":  {reason: "and can be read", text: "{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: g}, spec: {minMember: many}}", err: "PodGroup ns/g: spec.minMember: cannot decode"},
		"Nameless":  {reason: "and has a name", text: "{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup}", err: "PodGroup in namespace ns has no name: set metadata.name"},
		"PodName":   {reason: "as have pods", text: "{apiVersion: v1, kind: Pod}", err: "a Pod in namespace ns has no name: set metadata.name"},
		"JobName":   {reason: "and workloads", text: "{apiVersion: batch/v1, kind: Job, spec: {template: {" + inGang + "}}}", err: "a Job in namespace ns has no name: set metadata.name"},
		"BadNumber": {reason: "numbers are numbers", text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: many, template: {" + inGang + "}}}", err: `Deployment ns/w: spec.replicas: "many" is no number of pods: write a whole number from 0 on`},
		"Negative":  {reason: "from 0 on", text: "{apiVersion: batch/v1, kind: Job, metadata: {name: w}, spec: {completions: -1, template: {" + inGang + "}}}", err: `Job ns/w: spec.completions: "-1" is no number of pods: write a whole number from 0 on`},
		"TooMany":   {reason: "and not without end", text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 2000000000, template: {" + inGang + "}}}", err: "Deployment ns/w brings the pods of the files to 2000000000, and no more than 20000 can be asked about at a time"},
		"DaemonSet": {reason: "no gang has a pod on every node", text: "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: w}, spec: {template: {" + inGang + "}}}", err: "DaemonSet ns/w has as many pods as there are nodes"},
		"BadPod":    {reason: "pods can be read", text: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{resources: {limits: {cpu: many}}}]}}", err: "Pod ns/a cannot be read: quantities must match"},
		"BadTemplate": {
			reason: "templates too", text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {template: {metadata: {annotations: 1}, spec: {containers: [{name: c}]}}}}",
			err: "Deployment ns/w: spec.template cannot be read: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, notes, err := drafting(t, tc.text)
			if tc.err != "" || err != nil {
				if tc.err == "" || err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
				}

				return
			}
			got := map[string][]string{}
			for _, one := range d.Drafts {
				got[one.Key.String()] = nil
				for _, p := range one.Members(nil) {
					got[one.Key.String()] = append(got[one.Key.String()], p.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A pod of a manifest is what the API server would make of it.
func TestAdmit(t *testing.T) {
	d, _, err := drafting(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: w}
spec:
  template:
    metadata: {annotations: {pod-group-name: g}, labels: {app: w}}
    spec:
      hostNetwork: true
      nodeName: elsewhere
      priorityClassName: high
      tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}]
      initContainers: [{name: i, resources: {limits: {cpu: 1}}}]
      containers:
      - name: c
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: 2, nvidia.com/gpu: 1}, requests: {cpu: 1}}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := d.Drafts[0].Crews[0].pods[0]
	if got.Namespace != "ns" || got.UID != types.UID("ns/w-0") || !got.CreationTimestamp.Equal(&d.Now) || got.Spec.NodeName != "" || got.Spec.SchedulerName != "default-scheduler" || *got.Spec.Priority != 100 {
		t.Errorf("got %+v", got)
	}
	amounts := func(c corev1.Container) string {
		return fmt.Sprintf("%s cpu, %s gpu", c.Resources.Requests.Cpu(), c.Resources.Requests.Name("nvidia.com/gpu", ""))
	}
	want := []string{"1 cpu, 0 gpu", "1 cpu, 1 gpu", "80 TCP", "node.kubernetes.io/not-ready node.kubernetes.io/unreachable", "w-0 0 w"}
	port := got.Spec.Containers[0].Ports[0]
	if diff := cmp.Diff(want, []string{
		amounts(got.Spec.InitContainers[0]), amounts(got.Spec.Containers[0]), fmt.Sprint(port.HostPort, " ", port.Protocol),
		got.Spec.Tolerations[0].Key + " " + got.Spec.Tolerations[1].Key,
		got.Labels["statefulset.kubernetes.io/pod-name"] + " " + got.Labels["apps.kubernetes.io/pod-index"] + " " + got.Labels["app"],
	}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMembers(t *testing.T) {
	exists := func(name, ownerKind, owner string, phase corev1.PodPhase) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}}
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: ownerKind, Name: owner, Controller: new(true)}}
		}

		return pod
	}
	text := "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: {" + inGang + "}}}\n---\n" +
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 2, template: {" + inGang + "}}}\n---\n" +
		"{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {pod-group-name: g}}}"
	cases := map[string]struct {
		reason   string
		existing []*corev1.Pod
		want     []string
	}{
		"Nothing":    {reason: "what is not there comes from the files", want: []string{"j-0", "j-1", "w-0", "w-1", "p"}},
		"Same":       {reason: "a pod counts once", existing: []*corev1.Pod{exists("p", "", "", "")}, want: []string{"p", "j-0", "j-1", "w-0", "w-1"}},
		"Failed":     {reason: "one that has failed does not count", existing: []*corev1.Pod{exists("p", "", "", corev1.PodFailed)}, want: []string{"p", "j-0", "j-1", "w-0", "w-1", "p"}},
		"OfTheJob":   {reason: "so does one that the Job has made", existing: []*corev1.Pod{exists("j-x7d", "Job", "j", "")}, want: []string{"j-x7d", "j-0", "w-0", "w-1", "p"}},
		"OfASet":     {reason: "or the ReplicaSet of a Deployment", existing: []*corev1.Pod{exists("w-1-a", "ReplicaSet", "w-1", ""), exists("w-1-b", "ReplicaSet", "w-1", "")}, want: []string{"w-1-a", "w-1-b", "j-0", "j-1", "p"}},
		"OfAnother":  {reason: "and not of another one", existing: []*corev1.Pod{exists("w-a-1-a", "ReplicaSet", "w-a-1", "")}, want: []string{"w-a-1-a", "j-0", "j-1", "w-0", "w-1", "p"}},
		"MoreOfThem": {reason: "more than the file has is more", existing: []*corev1.Pod{exists("j-a", "Job", "j", ""), exists("j-b", "Job", "j", ""), exists("j-c", "Job", "j", "")}, want: []string{"j-a", "j-b", "j-c", "w-0", "w-1", "p"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, _, err := drafting(t, text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range d.Drafts[0].Members(tc.existing) {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
