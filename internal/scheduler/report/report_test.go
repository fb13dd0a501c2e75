package report

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

var bert = types.NamespacedName{Namespace: "ml", Name: "bert"}

func newTestReporter(t *testing.T, have ...*v2alpha2.PodGroup) *Reporter {
	t.Helper()
	all := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v2alpha2.PodGroup{}, 0, cache.Indexers{})
	for _, pg := range have {
		if err := all.GetStore().Add(pg); err != nil {
			t.Fatal(err)
		}
	}

	return New(&podgroups.Index{PodGroups: all}, &schedulertest.Notebook{}, nil, nil)
}

func TestDecided(t *testing.T) {
	r := newTestReporter(t)
	about := decide.About{UID: "1", Generation: 1}
	no := func(message string) *decide.Outcome {
		return &decide.Outcome{About: about, Message: message, Decision: &gang.Decision{}}
	}
	r.Decided(bert, no(`subgroup "r-0": room for 1 of min 2`))
	r.Decided(bert, no(`subgroup "r-0": room for 0 of min 2`))
	if got := r.last(bert).outcome.Message; got != `subgroup "r-0": room for 1 of min 2` {
		t.Errorf("only a figure changed, and the message became %q", got)
	}
	r.update(bert, func(is *record) { is.since = is.since.Add(-steady) })
	r.Decided(bert, no(`subgroup "r-0": room for 0 of min 2`))
	if got := r.last(bert).outcome.Message; got != `subgroup "r-0": room for 0 of min 2` {
		t.Errorf("after %v the message is still %q", steady, got)
	}
	r.Decided(bert, no(`subgroup "r-7": room for 0 of min 2`))
	if got := r.last(bert).outcome.Message; got != `subgroup "r-7": room for 0 of min 2` {
		t.Errorf("another subgroup stands in the way, and the message is %q", got)
	}

	r.Note(bert, "1", 1, &Progress{Reason: v2alpha2.ReasonPreempting, Message: "2 of 3"})
	r.Decided(bert, no("room for 0 of min 2"))
	want := &decide.Progress{About: about, Reason: v2alpha2.ReasonPreempting, Message: "2 of 3"}
	if diff := cmp.Diff(want, r.last(bert).progress); diff != "" {
		t.Errorf("the victims are still terminating: -want, +got:\n%s", diff)
	}
	r.Decided(bert, &decide.Outcome{About: about, Decision: &gang.Decision{Fits: true}})
	if got := r.last(bert).progress; got != nil {
		t.Errorf("the gang fits, and its progress is %v", got)
	}
	r.Note(bert, "1", 1, &Progress{Reason: v2alpha2.ReasonBinding, Message: "1 of 2"})
	r.Note(bert, "1", 1, nil)
	if got := r.last(bert).progress; got != nil {
		t.Errorf("the progress has ended, and is %v", got)
	}
	r.forget(bert)
	if len(r.records) > 0 {
		t.Errorf("a group that was deleted is remembered: %v", r.records)
	}
}

func TestPasses(t *testing.T) {
	r := newTestReporter(t)
	if got := r.passes(bert, true); got != lasting {
		t.Errorf("a reason that is new has to last for %v, want %v", got, lasting)
	}
	r.update(bert, func(is *record) { is.passing = is.passing.Add(-lasting) })
	if got := r.passes(bert, true); got > 0 {
		t.Errorf("a reason that has lasted has to last for another %v", got)
	}
	if got := r.passes(bert, false); got > 0 {
		t.Errorf("a reason that does not pass has to last for %v", got)
	}
	if got := r.passes(bert, true); got != lasting {
		t.Errorf("the next one has to last for %v, want %v", got, lasting)
	}
}

// Figures do not take the turn of a new reason.
func TestYieldToBinding(t *testing.T) {
	r := newTestReporter(t)
	r.slow, r.fast = flowcontrol.NewTokenBucketRateLimiter(0.001, 1), flowcontrol.NewTokenBucketRateLimiter(1, 1)
	r.busy.Store(time.Now().Add(time.Hour).UnixNano()) // however long the test takes
	if !r.yieldToBinding(t.Context(), false) {
		t.Error("figures could not be written although nothing else is")
	}
	if r.yieldToBinding(t.Context(), false) {
		t.Error("figures could be written although there were enough writes")
	}
	r.busy.Store(time.Now().Add(-rush).UnixNano())
	if !r.yieldToBinding(t.Context(), false) {
		t.Error("figures could not be written although no gang is being placed")
	}
}

// A merge patch has to name what it removes.
func TestStatusPatch(t *testing.T) {
	pg := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "7"}}
	one := resource.MustParse("1")
	pg.Status.ResourcesStatus = v2alpha2.PodGroupResourcesStatus{
		Requested: corev1.ResourceList{"cpu": one, "memory": one}, Allocated: corev1.ResourceList{"cpu": one},
	}
	patch, err := statusPatch(pg, &v2alpha2.PodGroupStatus{
		Placed: new(int32(0)), ResourcesStatus: v2alpha2.PodGroupResourcesStatus{Requested: corev1.ResourceList{"cpu": one}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"uid": "1", "resourceVersion": "7"},
		"status": map[string]any{
			"conditions": nil, "placed": 0.0, "subGroups": nil, "schedulingConditions": nil,
			"resourcesStatus": map[string]any{
				"requested": map[string]any{"cpu": "1", "memory": nil}, "allocated": nil, "allocatedNonPreemptible": nil,
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statusPatch(...): -want, +got:\n%s", diff)
	}
}

func TestPreempted(t *testing.T) {
	pg := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "bert"}}
	cases := map[string]struct {
		reason         string
		victims, asked int
		want           []string
	}{
		"Few": {
			reason: "four for each are usual", victims: 8, asked: 2,
			want: []string{"Normal Preempting: 8 less important pods are evicted to make room for 2 pods"},
		},
		"Many": {
			reason: "more deserve a warning", victims: 9, asked: 2,
			want: []string{
				"Normal Preempting: 9 less important pods are evicted to make room for 2 pods",
				"Warning ManyPreempted: 9 pods are evicted to make room for 2, more than 4 for each: limit it with --max-eviction-ratio",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, notes := newTestReporter(t, pg), &schedulertest.Notebook{}
			r.recorder = notes
			r.Preempted(bert, tc.victims, tc.asked)
			if diff := cmp.Diff(tc.want, notes.Events); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
