package scheduler

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sharing is a pod with volumes, and claims for devices after a colon.
func sharing(name string, volumes []string, devices ...string) holding {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, v := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v},
		}})
	}
	for _, d := range devices {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{ResourceClaimName: &d})
	}

	return holding{pod: pod}
}

func TestChains(t *testing.T) {
	cases := map[string]struct {
		reason string
		held   []holding
		want   [][]string
	}{
		"Apart": {
			reason: "pods that share nothing are prepared at the same time",
			held:   []holding{sharing("a", []string{"x"}), sharing("b", []string{"y"}), sharing("c", nil)},
			want:   [][]string{{"a"}, {"b"}, {"c"}},
		},
		"Shared": {
			reason: "those that share a claim one after the other, as they were placed",
			held:   []holding{sharing("a", nil, "d"), sharing("b", nil), sharing("c", nil, "d")},
			want:   [][]string{{"a", "c"}, {"b"}},
		},
		"Joined": {
			reason: "a pod that shares with two makes them one",
			held:   []holding{sharing("a", []string{"x"}), sharing("b", []string{"y"}), sharing("c", []string{"x", "y"}), sharing("d", []string{"y"})},
			want:   [][]string{{"a", "b", "c", "d"}},
		},
		"JoinedLate": {
			reason: "a joined chain keeps the order in which its pods were placed",
			held:   []holding{sharing("a", []string{"x"}), sharing("b", []string{"y"}), sharing("c", []string{"x"}), sharing("d", []string{"y", "x"})},
			want:   [][]string{{"a", "b", "c", "d"}},
		},
		"SameNameOtherKind": {
			reason: "a volume and a device of one name have nothing to do with each other",
			held:   []holding{sharing("a", []string{"x"}), sharing("b", nil, "x")},
			want:   [][]string{{"a"}, {"b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for _, chain := range chains(tc.held) {
				var names []string
				for _, m := range chain {
					names = append(names, tc.held[m].pod.Name)
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nchains(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEnough(t *testing.T) {
	cases := map[string]struct {
		reason  string
		percent int32
		nodes   int
		want    int
	}{
		"Few":      {reason: "in a small cluster every node is looked at", nodes: 99, want: 99},
		"Adaptive": {reason: "the larger the cluster, the smaller the part", nodes: 1000, want: 420},
		"Least":    {reason: "but at least a twentieth", nodes: 10000, want: 500},
		"Hundred":  {reason: "and at least a hundred nodes", nodes: 150, want: 100},
		"Asked":    {reason: "unless the profile says how many", percent: 100, nodes: 1000, want: 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := enoughOf(tc.percent, tc.nodes); got != tc.want {
				t.Errorf("%s\nenough(%v, %d) = %d, want %d", tc.reason, tc.percent, tc.nodes, got, tc.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		want   string
	}{
		"Default":     {reason: "the defaults are good", change: func(*Options) {}},
		"Minimums":    {reason: "there are two readings", change: func(o *Options) { o.Minimums = "volcano" }, want: `--minimums "volcano": it must be "arbor" or "kai"`},
		"Grace":       {reason: "time does not go backwards", change: func(o *Options) { o.StaleGrace = -1 }, want: `--stale-grace -1ns: it must not be negative; 0 means forever`},
		"BindTimeout": {reason: "a gang needs some time", change: func(o *Options) { o.BindTimeout = 0 }, want: `--bind-timeout 0s: it must be positive`},
		"Ratio":       {reason: "a ratio of evictions is none below zero", change: func(o *Options) { o.MaxEvictionRatio = -1 }, want: `--max-eviction-ratio -1: it must be a number that is not negative; 0 means no limit`},
		"NoRatio":     {reason: "a ratio is a number", change: func(o *Options) { o.MaxEvictionRatio = math.NaN() }, want: `--max-eviction-ratio NaN: it must be a number that is not negative; 0 means no limit`},
		"NoName":      {reason: "somebody has to be answered", change: func(o *Options) { o.Names = nil }, want: `--scheduler-name: name at least one, such as "arbor-scheduler"`},
		"NameTwice":   {reason: "a profile is there once", change: func(o *Options) { o.Names = []string{"a", "a"} }, want: `--scheduler-name "a,a": names must differ and not be empty`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			tc.change(&o)
			got := ""
			if err := o.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nValidate() = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
