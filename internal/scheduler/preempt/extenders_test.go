package preempt

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// A scriptedExtender filters nodes, or fails.
type scriptedExtender struct {
	fwk.Extender

	err       error
	ignorable bool
	asked     int
}

func (*scriptedExtender) Name() string                  { return "scripted" }
func (*scriptedExtender) IsFilter() bool                { return true }
func (*scriptedExtender) IsInterested(*corev1.Pod) bool { return true }
func (*scriptedExtender) SupportsPreemption() bool      { return false }
func (e *scriptedExtender) IsIgnorable() bool           { return e.ignorable }
func (e *scriptedExtender) Filter(_ *corev1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	e.asked++

	return nodes, nil, nil, e.err
}

func TestAskExtenders(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		reason   string
		ctx      context.Context //nolint:containedctx // a test
		extender scriptedExtender
		asked    int
		fails    bool
	}{
		"Answers":  {"It is asked for each shape.", t.Context(), scriptedExtender{}, 2, false},
		"Fails":    {"Which nodes will do is not known.", t.Context(), scriptedExtender{err: schedulertest.ErrBroken}, 1, true},
		"Ignored":  {"It may be slow to fail, so it is not asked again.", t.Context(), scriptedExtender{err: schedulertest.ErrBroken, ignorable: true}, 1, false},
		"TimeOver": {"No request is made once the budget is used up.", ended, scriptedExtender{}, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &dryRun{filters: []*filterState{{pod: schedulertest.Pod("a", 0)}, {pod: schedulertest.Pod("b", 0)}}}
			err := d.askExtenders(tc.ctx, []fwk.Extender{&tc.extender})
			if (err != nil) != tc.fails || tc.extender.asked != tc.asked {
				t.Errorf("%s\nIt was asked %d times, and the error is %v.", tc.reason, tc.extender.asked, err)
			}
		})
	}
}
