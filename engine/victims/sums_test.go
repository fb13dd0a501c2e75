package victims_test

import (
	"math"
	"testing"

	"github.com/arbor-control/arbor/engine/victims"
)

func TestSums(t *testing.T) {
	gpus := func(n int) thing { return thing{gpu: n} }
	cases := map[string]struct {
		reason string
		story  *story
		change func(*victims.Amounts)
		want   string
	}{
		"Enough": {
			reason: "two pods leave what two members ask for",
			story:  newStory(2, 4).run("a", 0, gpus(4)).run("b", 1, gpus(4)).preemptor(flat(2)).want(2, "default", gpus(4)),
		},
		"TooLittle": {
			reason: "three members ask for more than all nodes would have",
			story:  newStory(2, 4).run("a", 0, gpus(4)).run("b", 1, gpus(4)).preemptor(flat(3)).want(3, "default", gpus(4)),
			want:   "the minimum asks for 12 GPUs, and the nodes that could take a pod (2) would have 8 even if all pods that may be preempted (2) were evicted",
		},
		"SmallNodes": {
			reason: "what is free on nodes that are too small for one pod does not count",
			story:  newStory(3, 2).run("a", 0, gpus(4)).preemptor(flat(2)).want(2, "default", gpus(4)),
			change: func(a *victims.Amounts) { a.Free[0][0] = 2 },
			want:   "the minimum asks for 8 GPUs, and the nodes that could take a pod (1) would have 6 even if all pods that may be preempted (1) were evicted",
		},
		"NoNode": {
			reason: "no node is large enough",
			story:  newStory(2, 2).preemptor(flat(1)).want(1, "default", gpus(4)),
			want:   "the minimum asks for 4 GPUs, and no node would have enough for one pod even if all pods that may be preempted (0) were evicted",
		},
		"Smallest": {
			reason: "the minimum may be met by the members that ask for the least",
			story:  newStory(1, 2).preemptor(flat(2)).want(2, "default", gpus(8)).want(2, "default", gpus(1)),
		},
		"Overcommitted": {
			reason: "a node that has less than nothing takes nothing from the others",
			story:  newStory(2, 4).preemptor(flat(1)).want(1, "default", gpus(4)),
			change: func(a *victims.Amounts) { a.Free[1][0] = -4 },
		},
		"Excluded": {
			reason: "a node that no member can use does not count",
			story:  newStory(2, 4).preemptor(flat(2)).want(2, "default", gpus(4)),
			change: func(a *victims.Amounts) { a.Free[1] = nil },
			want:   "the minimum asks for 8 GPUs, and the nodes that could take a pod (1) would have 4 even if all pods that may be preempted (0) were evicted",
		},
		"Unit": {
			reason: "what is asked for is rounded up, and what is free is rounded down",
			story:  newStory(1, 9).preemptor(flat(1)).want(1, "default", gpus(8)).want(1, "default", gpus(3)),
			change: func(a *victims.Amounts) {
				a.Resources[0].Unit = 2
				a.Asks[0][0], a.Asks[1][0] = 11, 11
			},
			want: "the minimum asks for 6 GPUs, and no node would have enough for one pod even if all pods that may be preempted (0) were evicted",
		},
		"Huge": {
			reason: "sums do not overflow",
			story:  newStory(2, 4).preemptor(flat(2)).want(2, "default", gpus(4)),
			change: func(a *victims.Amounts) {
				for i := range a.Asks {
					a.Asks[i][0], a.Free[i][0] = math.MaxInt64, math.MaxInt64
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.story.Amounts = tc.story.amounts()
			if tc.change != nil {
				tc.change(tc.story.Amounts)
			}
			if got := victims.Sums(&tc.story.Problem); got != tc.want {
				t.Errorf("%s\nSums(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestSumsAskNothing: a problem that the sums reject costs no question.
func TestSumsAskNothing(t *testing.T) {
	s := newStory(1, 1).run("a", 0, thing{gpu: 1}).preemptor(flat(2)).want(2, "default", thing{gpu: 1})
	s.Amounts = s.amounts()
	if r := s.check(t); r.Outcome != victims.Insufficient || s.cluster.asked > 0 {
		t.Errorf("Search(...) = %+v with %d questions", r, s.cluster.asked)
	}
}
