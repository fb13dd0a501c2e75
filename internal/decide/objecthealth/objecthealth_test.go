package objecthealth_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/objecthealth"
)

const (
	current     = objecthealth.Current
	progressing = objecthealth.Progressing
	degraded    = objecthealth.Degraded
	failed      = objecthealth.Failed
)

var now = time.Unix(1_000_000, 0).UTC()

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}

	return o
}

// rolledOut is the status of a Deployment with one replica after a rollout.
const rolledOut = `observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`

func deployment(status string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, uid: u, generation: 2}, spec: {replicas: 1}, status: {" + status + "}}"
}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           objecthealth.Health
	}{
		"Deployment":         {"It is rolled out and available.", deployment(rolledOut), objecthealth.Health{}},
		"DeploymentNew":      {"Its controller has not seen it.", deployment("observedGeneration: 1"), objecthealth.Health{State: progressing, Reason: "LatestGenerationNotObserved", Message: "Deployment generation is 2, but latest observed generation is 1"}},
		"DeploymentRolling":  {"Its pods are not ready yet.", deployment("observedGeneration: 2, replicas: 1, updatedReplicas: 1"), objecthealth.Health{State: progressing, Reason: "LessAvailable", Message: "Available: 0/1"}},
		"DeploymentDeadline": {"Its own deadline is exceeded, and the message is its own.", deployment(`observedGeneration: 2, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: ReplicaSet "a-1" has timed out progressing.}]`), objecthealth.Health{State: failed, Reason: "ProgressDeadlineExceeded", Message: `ReplicaSet "a-1" has timed out progressing.`}},
		"StatefulSet":        {"One of three pods is ready.", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 1}}", objecthealth.Health{State: progressing, Reason: "LessReady", Message: "Ready: 1/3"}},
		"DaemonSet":          {"Its controller has not seen it.", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 1}}", objecthealth.Health{State: progressing, Reason: "NoObservedGeneration", Message: "DaemonSet status.observedGeneration not found"}},
		"ReplicaSet":         {"None of its pods is there.", "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 1}}", objecthealth.Health{State: progressing, Reason: "LessLabelled", Message: "Labelled: 0/1"}},
		"PodCrashing":        {"A container fails again and again.", "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, containerStatuses: [{name: main, state: {waiting: {reason: CrashLoopBackOff}}}]}}", objecthealth.Health{State: failed, Reason: "ContainerCrashLooping", Message: "Containers in CrashLoop state: main"}},
		"PodPending":         {"It is not scheduled yet.", "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Pending}}", objecthealth.Health{State: progressing, Reason: "PodPending", Message: "Pod is in the Pending phase"}},
		"PodUnschedulable":   {"It cannot be scheduled.", `{apiVersion: v1, kind: Pod, metadata: {name: a, creationTimestamp: "2020-01-01T00:00:00Z"}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`, objecthealth.Health{State: failed, Reason: "PodUnschedulable", Message: "Pod could not be scheduled"}},
		"PodFailed":          {"To kstatus it has completed, which is not what a user wants.", "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Failed}}", objecthealth.Health{State: failed, Reason: "PodFailed", Message: "Pod has completed, but not successfully"}},
		"PodEvicted":         {"The kubelet has a message.", "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Failed, message: The node was low on memory.}}", objecthealth.Health{State: failed, Reason: "PodFailed", Message: "The node was low on memory."}},
		"PodSucceeded":       {"It is done.", "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Succeeded}}", objecthealth.Health{}},
		"JobRunning":         {"A Job that runs is current.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2026-01-01T00:00:00Z", active: 1}}`, objecthealth.Health{}},
		"JobFailed":          {"It does not run again.", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {failed: 1, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, objecthealth.Health{State: failed, Reason: "JobFailed", Message: "Job Failed. failed: 1/1"}},
		"ClaimPending":       {"It has no volume.", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}", objecthealth.Health{State: progressing, Reason: "NotBound", Message: "PVC is not Bound. phase: Pending"}},
		"ClaimBound":         {"It has.", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}", objecthealth.Health{}},
		"Service":            {"A load balancer needs an address.", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}", objecthealth.Health{State: progressing, Reason: "NoIPAssigned", Message: "ClusterIP not set. Service type: LoadBalancer"}},
		"Budget":             {"Its controller has not seen it.", "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 2}, status: {observedGeneration: 1}}", objecthealth.Health{State: progressing, Reason: "LatestGenerationNotObserved", Message: "PodDisruptionBudget generation is 2, but latest observed generation is 1"}},
		"CRDNames":           {"Another CRD has its names.", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, status: {conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: '"as" is already in use'}]}}`, objecthealth.Health{State: failed, Reason: "PluralConflict", Message: `"as" is already in use`}},
		"CRDInstalling":      {"It is not served yet.", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}", objecthealth.Health{State: progressing, Reason: "Installing", Message: "Install in progress"}},
		"Stalled":            {"Its controller gives up.", `{apiVersion: example.com/v1, kind: T, metadata: {name: a}, status: {conditions: [{type: Stalled, status: "True", reason: BadSpec, message: spec.size is too small}]}}`, objecthealth.Health{State: failed, Reason: "BadSpec", Message: "spec.size is too small"}},
		"Reconciling":        {"Its controller works on it.", `{apiVersion: example.com/v1, kind: T, metadata: {name: a}, status: {conditions: [{type: Reconciling, status: "True", reason: Scaling}]}}`, objecthealth.Health{State: progressing, Reason: "Scaling"}},
		"NotReady":           {"Ready is widely used.", `{apiVersion: example.com/v1, kind: T, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False", reason: NoQuorum, message: 1 of 3}]}}`, objecthealth.Health{State: progressing, Reason: "NoQuorum", Message: "1 of 3"}},
		"Ready":              {"It is.", `{apiVersion: example.com/v1, kind: T, metadata: {name: a}, status: {conditions: [{type: Ready, status: "True"}]}}`, objecthealth.Health{}},
		"NoStatus":           {"Nothing is known against it.", "{apiVersion: example.com/v1, kind: T, metadata: {name: a, generation: 1}}", objecthealth.Health{}},
		"OddStatus":          {"What cannot be read is nothing against it either.", "{apiVersion: example.com/v1, kind: T, metadata: {name: a, generation: 1}, status: {observedGeneration: one, conditions: {ready: false}}}", objecthealth.Health{}},
		"Terminating":        {"Another client deletes it.", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, objecthealth.Health{State: progressing, Reason: "Terminating", Message: "another client is deleting it"}},
		"Applied":            {"A kind without rules is current, whatever its status is.", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "False"}]}}`, objecthealth.Health{}},
		"LongMessage":        {"Messages are bounded, at the end of a character.", fmt.Sprintf(`{apiVersion: example.com/v1, kind: T, metadata: {name: a}, status: {conditions: [{type: Stalled, status: "True", reason: Long, message: "x%s"}]}}`, strings.Repeat("é", 200)), objecthealth.Health{State: failed, Reason: "Long", Message: "x" + strings.Repeat("é", 149) + "…"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, objecthealth.Of(object(t, tc.object))); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRuleOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		kind   schema.GroupKind
		want   objecthealth.Rule
	}{
		"Deployment": {"kstatus has rules for it.", schema.GroupKind{Group: "apps", Kind: "Deployment"}, objecthealth.Always},
		"ConfigMap":  {"It has no status.", schema.GroupKind{Kind: "ConfigMap"}, objecthealth.Applied},
		"Autoscaler": {"Its status changes all the time and says nothing to kstatus.", schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, objecthealth.Applied},
		"Custom":     {"It may use the conditions of kstatus.", schema.GroupKind{Group: "example.com", Kind: "Deployment"}, objecthealth.WithStatus},
		"Gateway":    {"A group of k8s.io may still be that of a CRD.", schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gateway"}, objecthealth.WithStatus},
	} {
		t.Run(name, func(t *testing.T) {
			if got := objecthealth.RuleOf(tc.kind); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestAssess changes an object, and checks what is recorded last.
func TestAssess(t *testing.T) {
	broken := strings.Replace(rolledOut, "availableReplicas: 1", "availableReplicas: 0", 1)
	unseen := strings.Replace(deployment(broken), "generation: 2", "generation: 3", 1)
	recreated := strings.Replace(deployment(broken), "uid: u", "uid: another", 1)
	less := func(s objecthealth.State) objecthealth.Health {
		return objecthealth.Health{State: s, Reason: "LessAvailable", Message: "Available: 0/1"}
	}
	cases := map[string]struct {
		reason  string
		objects []string
		want    objecthealth.Record
	}{
		"Current":     {"It works.", []string{deployment(rolledOut)}, objecthealth.Record{}},
		"Progressing": {"It is on its way, since it was seen first.", []string{deployment(broken), deployment(broken)}, objecthealth.Record{Health: less(progressing), Since: now}},
		"Degraded":    {"It worked, and nothing was asked of it since.", []string{deployment(rolledOut), deployment(broken), deployment(broken)}, objecthealth.Record{Health: less(degraded), Since: now.Add(time.Minute)}},
		"Recovered":   {"It works again.", []string{deployment(rolledOut), deployment(broken), deployment(rolledOut)}, objecthealth.Record{}},
		"Generation": {"A change begins another rollout.", []string{deployment(rolledOut), deployment(broken), unseen}, objecthealth.Record{
			Health: objecthealth.Health{State: progressing, Reason: "LatestGenerationNotObserved", Message: "Deployment generation is 3, but latest observed generation is 2"}, Since: now.Add(2 * time.Minute),
		}},
		"Recreated": {"Another object has another past.", []string{deployment(rolledOut), recreated}, objecthealth.Record{Health: less(progressing), Since: now.Add(time.Minute)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r objecthealth.Record
			for i, text := range tc.objects {
				r = r.Assess(object(t, text), now.Add(time.Duration(i)*time.Minute))
			}
			if diff := cmp.Diff(tc.want, r, cmpopts.IgnoreUnexported(objecthealth.Record{})); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	r := objecthealth.Record{}.Missing(now).Missing(now.Add(time.Hour))
	want := objecthealth.Record{Health: objecthealth.Health{State: degraded, Reason: "NotFound", Message: "it does not exist"}, Since: now}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreUnexported(r)); diff != "" {
		t.Error(diff)
	}
	if got := r.Assess(object(t, deployment(rolledOut)), now); got.State != current {
		t.Errorf("an object that is back is %s", got.State)
	}
}

// TestRecheck has a Pod that fits no node, and no event about it.
func TestRecheck(t *testing.T) {
	young := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`)
	young.SetCreationTimestamp(metav1.NewTime(time.Now().Add(time.Hour)))
	r := objecthealth.Record{}.Assess(young, now)
	if r.State != progressing || r.Recheck() <= 15*time.Second {
		t.Errorf("%+v, again in %s", r, r.Recheck())
	}
	if again := (objecthealth.Record{}).Recheck(); again != 0 {
		t.Errorf("what is current is judged again in %s", again)
	}
}

func of(s objecthealth.State, name string, ago time.Duration) objecthealth.Object {
	return objecthealth.Object{Health: objecthealth.Health{State: s, Reason: "Because", Message: "of this"}, Name: name, Since: now.Add(-ago)}
}

func TestSummarize(t *testing.T) {
	fine := objecthealth.Object{Name: "fine"}
	cases := map[string]struct {
		reason  string
		objects []objecthealth.Object
		limit   time.Duration
		want    metav1.Condition
		next    time.Time
	}{
		"None":        {reason: "Nothing is nothing bad.", want: metav1.Condition{Status: "True", Reason: "Healthy", Message: "there are no objects"}},
		"One":         {reason: "All work.", objects: []objecthealth.Object{fine}, want: metav1.Condition{Status: "True", Reason: "Healthy", Message: "1 object is healthy"}},
		"Two":         {reason: "All work.", objects: []objecthealth.Object{fine, fine}, want: metav1.Condition{Status: "True", Reason: "Healthy", Message: "2 objects are healthy"}},
		"Progressing": {reason: "It is not known yet, until the time is over.", objects: []objecthealth.Object{fine, of(progressing, "b", time.Minute), of(progressing, "a", 2*time.Minute)}, limit: 10 * time.Minute, want: metav1.Condition{Status: "Unknown", Reason: "Progressing", Message: "2 of 3 objects are not healthy (2 progressing): a: Because: of this"}, next: now.Add(8 * time.Minute)},
		"Timeout":     {reason: "It takes too long.", objects: []objecthealth.Object{of(progressing, "a", 10*time.Minute)}, limit: 10 * time.Minute, want: metav1.Condition{Status: "False", Reason: "Degraded", Message: "1 of 1 objects is not healthy (1 degraded): a: Timeout: progressing for more than 10m0s: Because: of this"}},
		"JustInTime":  {reason: "A moment is left.", objects: []objecthealth.Object{of(progressing, "a", 10*time.Minute-1)}, limit: 10 * time.Minute, want: metav1.Condition{Status: "Unknown", Reason: "Progressing", Message: "1 of 1 objects is not healthy (1 progressing): a: Because: of this"}, next: now.Add(1)},
		"NoLimit":     {reason: "It may take any time.", objects: []objecthealth.Object{of(progressing, "a", 1000*time.Hour)}, want: metav1.Condition{Status: "Unknown", Reason: "Progressing", Message: "1 of 1 objects is not healthy (1 progressing): a: Because: of this"}},
		"Waiting":     {reason: "What has not begun has no time limit.", objects: []objecthealth.Object{{Health: objecthealth.Health{State: progressing, Reason: "NotApplied"}, Name: "a"}}, limit: time.Minute, want: metav1.Condition{Status: "Unknown", Reason: "Progressing", Message: "1 of 1 objects is not healthy (1 progressing): a: NotApplied"}},
		"Worst":       {reason: "The worst is named, and all are counted.", objects: []objecthealth.Object{of(progressing, "a", 0), of(failed, "z", 0), of(degraded, "b", 0), of(failed, "y", 0), fine}, want: metav1.Condition{Status: "False", Reason: "Failed", Message: "4 of 5 objects are not healthy (2 failed, 1 degraded, 1 progressing): y: Because: of this"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Type = enov1.ConditionHealthy
			got := objecthealth.Summarize(tc.objects, now, tc.limit)
			if diff := cmp.Diff(tc.want, got.Condition()); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if !got.Next.Equal(tc.next) {
				t.Errorf("%s\nit changes at %s, want %s", tc.reason, got.Next, tc.next)
			}
		})
	}
}

// TestSummarizeInAnyOrder has the same objects in many orders.
func TestSummarizeInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var all []objecthealth.Object
		for range r.IntN(12) {
			// Few values, so that objects are alike in all but one of them.
			o := of(objecthealth.State(r.IntN(4)), string(rune('a'+r.IntN(3))), time.Duration(r.IntN(4))*time.Minute)
			o.Reason, o.Message = string(rune('p'+r.IntN(2))), string(rune('x'+r.IntN(2)))
			all = append(all, o)
		}
		want := objecthealth.Summarize(all, now, 2*time.Minute)
		if total := want.Counts[current] + want.Counts[progressing] + want.Counts[degraded] + want.Counts[failed]; total != len(all) || want.Total != len(all) {
			t.Fatalf("%d objects, counted %d of %d", len(all), total, want.Total)
		}
		for range 5 {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			got := objecthealth.Summarize(all, now, 2*time.Minute)
			if diff := cmp.Diff(want.Condition(), got.Condition()); diff != "" || !got.Next.Equal(want.Next) || got.Counts != want.Counts {
				t.Fatalf("the order matters: %+v\n%s", all, diff)
			}
		}
	}
}
