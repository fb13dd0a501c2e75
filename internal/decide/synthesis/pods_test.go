package synthesis_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

func TestPods(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(-d))) }
	pod := func(uuid string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: uuid, Labels: map[string]string{enov1.LabelSynthesisUUID: uuid},
			Annotations: map[string]string{enov1.AnnotationCompositionUID: "c", enov1.AnnotationSynthesizerImage: "image"},
		}}
		for _, f := range change {
			f(p)
		}

		return p
	}
	going := func(p *corev1.Pod) { p.DeletionTimestamp = ago(0) }
	scheduled := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: *ago(d)}}
		}
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "executor", Image: "image", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
		}
	}
	exited := func(container string, code int32, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
			}})
		}
	}
	begun := func(d time.Duration) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.StartTime = ago(d) } }
	running := func(container string, d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *ago(d)}}})
		}
	}
	installing := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "synth-installer", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	// died is a container that failed some time ago.
	died := func(container string, d time.Duration, code int32, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			exited(container, code, reason, message)(p)
			p.Status.ContainerStatuses[len(p.Status.ContainerStatuses)-1].State.Terminated.FinishedAt = *ago(d)
		}
	}
	limited := func(p *corev1.Pod) {
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
		}
	}
	type view = synthesis.PodView
	inFlight := func(change func(*enov1.Synthesis)) func(*view) {
		return func(v *view) { change(v.Composition.Status.InFlightSynthesis) }
	}
	began := func(d time.Duration) func(*view) {
		return inFlight(func(s *enov1.Synthesis) { s.Initialized = ago(d) })
	}
	// unprepared is a pod without volumes or network.
	unprepared := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse})
	}
	// warned adds a warning that is older than those before.
	warned := func(reason, message string) func(*view) {
		return func(v *view) {
			v.Warnings = append(v.Warnings, corev1.Event{Reason: reason, Message: message, LastTimestamp: *ago(time.Duration(len(v.Warnings)) * time.Second)})
		}
	}
	all := func(changes ...func(*view)) func(*view) {
		return func(v *view) {
			for _, change := range changes {
				change(v)
			}
		}
	}
	promoted := func(v *view) {
		st := &v.Composition.Status
		st.CurrentSynthesis, st.InFlightSynthesis = st.InFlightSynthesis, nil
	}

	forbid := func(v *view) {
		v.Rules = tenancy.Rules{Scope: tenancy.Namespace}
		v.Composition.Spec.SynthesisEnv = []enov1.EnvVar{{Name: "BASH_ENV", Value: "/dev/stdin"}}
	}

	cases := map[string]struct {
		reason string
		pods   []*corev1.Pod
		change func(*view)

		create  bool
		deleted string
		giveUp  string
		next    time.Duration
		explain bool
	}{
		"Begun":       {reason: "A synthesis in flight gets a pod, and has until its time is over.", create: true, next: 21 * time.Second},
		"Runs":        {reason: "It has one.", pods: []*corev1.Pod{pod("u")}, next: 21 * time.Second},
		"Idle":        {reason: "Nothing is in flight.", change: func(v *view) { v.Composition.Status = enov1.CompositionStatus{} }},
		"Rollback":    {reason: "A rollback runs nothing.", change: inFlight(func(s *enov1.Synthesis) { s.RolledBackTo = "x" })},
		"Forbidden":   {reason: "The environment changed after the scheduler had checked it.", change: forbid, giveUp: `synthesisEnv: variable "BASH_ENV"`},
		"Trusted":     {reason: "Without rules, any environment is allowed.", change: func(v *view) { forbid(v); v.Rules = tenancy.Rules{} }, create: true, next: 21 * time.Second},
		"ForbidLater": {reason: "The pod has the environment that was checked when it was created.", pods: []*corev1.Pod{pod("u")}, change: forbid, next: 21 * time.Second},
		"ForbidImage": {reason: "A pod that must be replaced is deleted first.", pods: []*corev1.Pod{pod("u")}, change: func(v *view) { forbid(v); v.Synthesizer.Spec.Image = "new" }, deleted: "image_changed", next: 21 * time.Second},
		"NoProgram":   {reason: "There is nothing to run.", change: func(v *view) { v.Synthesizer = nil }},
		"Going":       {reason: "Its name is free when it is gone.", pods: []*corev1.Pod{pod("u", going)}, next: 21 * time.Second},
		"Success":     {reason: "Its work is done.", pods: []*corev1.Pod{pod("u")}, change: promoted, deleted: "success"},
		"AlreadyGone": {reason: "It is deleted once.", pods: []*corev1.Pod{pod("u", going)}, change: promoted},
		"Canceled":    {reason: "It was given up.", pods: []*corev1.Pod{pod("u")}, change: inFlight(func(s *enov1.Synthesis) { s.Canceled = ago(0) }), deleted: "timeout"},
		"Superseded":  {reason: "Another took its place, and has no pod yet.", pods: []*corev1.Pod{pod("old")}, create: true, deleted: "superseded", next: 21 * time.Second},
		"Orphaned":    {reason: "Its composition is gone.", pods: []*corev1.Pod{pod("u")}, change: func(v *view) { v.Composition = nil }, deleted: "orphaned"},
		"Namesake":    {reason: "Another composition has its name.", pods: []*corev1.Pod{pod("u")}, change: func(v *view) { v.Composition.UID = "d" }, create: true, deleted: "orphaned", next: 21 * time.Second},
		"Deleted":     {reason: "Its composition goes.", pods: []*corev1.Pod{pod("u")}, change: func(v *view) { v.Composition.DeletionTimestamp = ago(0) }, deleted: "composition_deleted"},
		"Synthesizer": {reason: "Its program is gone.", pods: []*corev1.Pod{pod("u")}, change: func(v *view) { v.Synthesizer = nil }, deleted: "synthesizer_deleted"},
		"Image":       {reason: "Its program is another.", pods: []*corev1.Pod{pod("u", phase(corev1.PodSucceeded))}, change: func(v *view) { v.Synthesizer.Spec.Image = "new" }, deleted: "image_changed", next: 21 * time.Second},
		"Missing":     {reason: "There is no room for it.", change: func(v *view) { v.State = synthesis.NamespaceMissing }, giveUp: "namespace pods, which pods of synthesizers run in, does not exist"},
		"Terminating": {reason: "The room goes.", pods: []*corev1.Pod{pod("u")}, change: func(v *view) { v.State = synthesis.NamespaceTerminating }, deleted: "namespace_terminating", giveUp: "is being deleted"},
		"Scheduled":   {reason: "The kubelet has some time to hear of it.", pods: []*corev1.Pod{pod("u", scheduled(2*time.Second))}, next: time.Second},
		"Deaf":        {reason: "It did not.", pods: []*corev1.Pod{pod("u", scheduled(3*time.Second))}, deleted: "kubelet_timeout", next: 21 * time.Second},
		"Creating":    {reason: "It did, and pulls, which has a limit of its own.", pods: []*corev1.Pod{pod("u", scheduled(9*time.Second), waiting("ContainerCreating", ""))}, next: 51 * time.Second},
		"Pulls":       {reason: "The time to pull an image is not time of the synthesis.", pods: []*corev1.Pod{pod("u", begun(50*time.Second), running("publisher", 49*time.Second), waiting("ContainerCreating", ""))}, change: began(50 * time.Second), next: 10 * time.Second},
		"Pulled":      {reason: "Its time begins when the last container runs, and not before.", pods: []*corev1.Pod{pod("u", begun(55*time.Second), running("executor", 5*time.Second), running("publisher", 4*time.Second))}, change: began(55 * time.Second), next: 34 * time.Second},
		"Endless":     {reason: "And then it ends.", pods: []*corev1.Pod{pod("u", phase(corev1.PodRunning), begun(55*time.Second), running("executor", 38*time.Second), running("publisher", 38*time.Second))}, change: began(55 * time.Second), giveUp: "did not end in time: its pod is Running"},
		"Hangs":       {reason: "A pull that does not end is named.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), waiting("ContainerCreating", ""))}, change: began(60 * time.Second), giveUp: `container executor of the pod did not start within 1m0s (--image-pull-timeout): image "image" is probably still being pulled (ContainerCreating)`},
		"Mounts":      {reason: "Images are pulled after volumes are mounted.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), unprepared, waiting("PodInitializing", ""))}, change: all(began(60*time.Second), warned("FailedMount", `MountVolume.SetUp failed for volume "account"`)), giveUp: `the volumes of the pod were not mounted within 1m0s (--image-pull-timeout): FailedMount: MountVolume.SetUp failed for volume "account"`},
		"Network":     {reason: "And after the network is there.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), unprepared, waiting("PodInitializing", ""))}, change: all(began(60*time.Second), warned("FailedCreatePodSandBox", "no addresses")), giveUp: "the sandbox of the pod, with its network, was not created within 1m0s (--image-pull-timeout): FailedCreatePodSandBox: no addresses"},
		"Newest":      {reason: "Of several warnings the newest counts, in whatever order they are listed.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), unprepared, waiting("PodInitializing", ""))}, change: all(began(60*time.Second), warned("FailedCreatePodSandBox", "no addresses"), warned("FailedMount", "older")), giveUp: "FailedCreatePodSandBox: no addresses"},
		"Unrelated":   {reason: "Other warnings explain nothing.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), unprepared, waiting("PodInitializing", ""))}, change: all(began(60*time.Second), warned("Unhealthy", "x")), giveUp: "the volumes and the network of the pod were not ready within 1m0s (--image-pull-timeout), before any image is pulled: see the events of pod u"},
		"Unexplained": {reason: "Without warnings, the image is not blamed, and they are asked for.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), unprepared, waiting("PodInitializing", ""))}, change: began(60 * time.Second), giveUp: "the volumes and the network of the pod were not ready within 1m0s (--image-pull-timeout), before any image is pulled: see the events of pod u", explain: true},
		"Installs":    {reason: "So is a container that does not let the others start.", pods: []*corev1.Pod{pod("u", begun(60*time.Second), waiting("PodInitializing", ""), installing)}, change: began(60 * time.Second), giveUp: "container synth-installer of the pod did not end within 1m0s"},
		"Replaced":    {reason: "A pod that is being deleted has no time of its own.", pods: []*corev1.Pod{pod("u", going, begun(5*time.Second), running("executor", time.Second))}, change: began(31 * time.Second), giveUp: "did not end in time"},
		"Unpulled":    {reason: "What it cannot pull is told.", pods: []*corev1.Pod{pod("u", waiting("ErrImagePull", "no such host"))}, giveUp: `the pod cannot start container executor, image "image": ErrImagePull: no such host`},
		"Killed":      {reason: "What was killed is told.", pods: []*corev1.Pod{pod("u", exited("executor", 137, "Error", ""))}, giveUp: "container executor of the pod failed: Error, exit code 137"},
		"Memory":      {reason: "Lack of memory is named, and what to do.", pods: []*corev1.Pod{pod("u", exited("executor", 137, "OOMKilled", ""))}, giveUp: "container executor of the pod failed: OOMKilled, exit code 137; it ran out of memory: raise spec.podOverrides.resources.limits.memory of the Synthesizer"},
		"Limit":       {reason: "With the limit, if it is known.", pods: []*corev1.Pod{pod("u", exited("executor", 137, "OOMKilled", ""), limited)}, giveUp: "it ran out of memory, its limit is 64Mi: raise"},
		"Helper":      {reason: "Other containers have other limits.", pods: []*corev1.Pod{pod("u", exited("publisher", 137, "OOMKilled", ""))}, giveUp: "it ran out of memory: raise --synthesizer-pod-helper-limits of the manager"},
		"First":       {reason: "The container that failed first is the cause.", pods: []*corev1.Pod{pod("u", died("executor", 1*time.Second, 1, "Error", "broken pipe"), died("publisher", 2*time.Second, 2, "Error", "no route"))}, giveUp: "container publisher of the pod failed: Error, exit code 2: no route"},
		"SameSecond":  {reason: "Of two in one second, it is the one that was killed.", pods: []*corev1.Pod{pod("u", died("executor", 2*time.Second, 1, "Error", "broken pipe"), died("publisher", 2*time.Second, 137, "Error", ""))}, giveUp: "container publisher of the pod failed: Error, exit code 137"},
		"Lost":        {reason: "The publisher ends when the executor does.", pods: []*corev1.Pod{pod("u", died("executor", 2*time.Second, 137, "OOMKilled", ""), died("publisher", 2*time.Second, 1, "Error", "the executor ended"))}, giveUp: "container executor of the pod failed: OOMKilled"},
		"Evicted":     {reason: "What was evicted is told.", pods: []*corev1.Pod{pod("u", phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "low on memory" })}, giveUp: "the pod failed: Evicted: low on memory"},
		"EvictedAll":  {reason: "The kubelet kills the containers of a pod that it evicts.", pods: []*corev1.Pod{pod("u", phase(corev1.PodFailed), exited("executor", 137, "Error", ""), func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "Usage of EmptyDir volume" })}, giveUp: "the pod failed: Evicted: Usage of EmptyDir volume"},
		"SlowClock":   {reason: "The clock of its node is a minute behind.", pods: []*corev1.Pod{pod("u", begun(70*time.Second), running("executor", 65*time.Second), running("publisher", 65*time.Second))}, change: began(5 * time.Second), next: 33 * time.Second},
		"Nothing":     {reason: "It ended and did nothing.", pods: []*corev1.Pod{pod("u", phase(corev1.PodSucceeded))}, giveUp: "the pod ended without a result"},
		"Half":        {reason: "Who would write has ended.", pods: []*corev1.Pod{pod("u", exited("publisher", 0, "Completed", ""))}, giveUp: "the pod ended without a result"},
		"Served":      {reason: "Who ran the program has, and that is no end.", pods: []*corev1.Pod{pod("u", exited("executor", 0, "Completed", ""))}, next: 21 * time.Second},
		"Late": {
			reason: "Where it was when its time was over is told.", change: inFlight(func(s *enov1.Synthesis) { s.Initialized = ago(31 * time.Second) }), giveUp: "did not end in time: its pod is Pending, Unschedulable: no nodes",
			pods: []*corev1.Pod{pod("u", phase(corev1.PodPending), func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no nodes"}}
			})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := view{
				Composition: &enov1.Composition{ObjectMeta: metav1.ObjectMeta{UID: "c"}, Status: enov1.CompositionStatus{InFlightSynthesis: &enov1.Synthesis{UUID: "u", Initialized: ago(10 * time.Second)}}},
				Synthesizer: &enov1.Synthesizer{Spec: enov1.SynthesizerSpec{Image: "image"}},
				Pods:        tc.pods, Namespace: "pods", Timeout: 30 * time.Second, CreationTTL: 3 * time.Second, PullTimeout: time.Minute,
			}
			if tc.change != nil {
				tc.change(&v)
			}
			got := synthesis.Pods(v, now)
			deleted := ""
			for _, d := range got.Delete {
				deleted += d.Reason
			}
			next := time.Duration(0)
			if !got.Next.IsZero() {
				next = got.Next.Sub(now)
			}
			if got.Create != tc.create || deleted != tc.deleted || next != tc.next {
				t.Errorf("%s\ncreate %t, deleted %q, next %s; want %t, %q, %s", tc.reason, got.Create, deleted, next, tc.create, tc.deleted, tc.next)
			}
			if !strings.Contains(got.GiveUp, tc.giveUp) || tc.giveUp == "" && got.GiveUp != "" {
				t.Errorf("%s\ngiven up because of %q, want %q", tc.reason, got.GiveUp, tc.giveUp)
			}
			if (got.Explain != nil) != tc.explain {
				t.Errorf("%s\nit asks for the warnings of %v", tc.reason, got.Explain)
			}
			if got.Idle() != (!tc.create && tc.deleted == "" && tc.giveUp == "") {
				t.Errorf("%s\nit is idle: %t", tc.reason, got.Idle())
			}
		})
	}
}
