package victims_test

import (
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/engine/victims"
)

// crowded has 500 nodes of eight GPUs with one-GPU pods, and a gang that wants
// 64 whole nodes.
func crowded() *story { return full().preemptor(flat(64)).want(64, podtree.DefaultLeaf, eight) }

// inGangs is the same with all pods in gangs of so many, of which so many are
// needed, spread over the nodes.
func inGangs(size int, minimum int32) *story {
	s := newStory(500, 8)
	for i := range 8 * 500 {
		if i%size == 0 {
			s.gang(flat(minimum))
		}
		s.run("p"+strconv.Itoa(i), i%500, one, started(int64(i)), s.of(podtree.DefaultLeaf))
	}

	return s.preemptor(flat(64)).want(64, podtree.DefaultLeaf, eight)
}

func TestSearchAsksLittle(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		story              *story
		victims, questions int
	}{
		"Plain": {
			reason: "nine questions for each node, one for each victim and a few for each member",
			story:  crowded(), victims: 512, questions: 6500,
		},
		"Elastic": {
			reason: "the same for surplus pods of a gang",
			story:  inGangs(4000, 0), victims: 512, questions: 6500,
		},
		"NoShape": {
			reason: "a member without a shape is asked for on all nodes twice, and then compares a hundred of them",
			story:  full().preemptor(flat(1)).want(1, podtree.DefaultLeaf, thing{gpu: 8, alone: "x"}), victims: 8, questions: 2000,
		},
		"SmallGangs": {
			reason: "gangs of eight pods on eight nodes each: members take the room that gangs leave on other nodes",
			story:  inGangs(8, 8), victims: 544, questions: 6500,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := victims.Search(t.Context(), &tc.story.Problem, tc.story.cluster)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d victims, %d questions", len(got.Victims), tc.story.cluster.asked)
			if len(got.Victims) > tc.victims || tc.story.cluster.asked > tc.questions {
				t.Errorf("%d victims and %d questions, want at most %d and %d: %s", len(got.Victims), tc.story.cluster.asked, tc.victims, tc.questions, tc.reason)
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for name, s := range map[string]*story{
		"plain": crowded(), "elastic": inGangs(4000, 0), "gangs-of-8": inGangs(8, 8), "gangs-of-500": inGangs(500, 400),
		"one-pod": full().preemptor(flat(1)).want(1, podtree.DefaultLeaf, eight),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s.cluster.asked = 0
			evicted := 0
			for b.Loop() {
				got, err := victims.Search(b.Context(), &s.Problem, s.cluster)
				if err != nil || got.Outcome != victims.Found {
					b.Fatalf("outcome %d, error %v", got.Outcome, err)
				}
				evicted = len(got.Victims)
			}
			b.ReportMetric(float64(s.cluster.asked)/float64(b.N), "questions/op")
			b.ReportMetric(float64(evicted), "victims/op")
		})
	}
}
