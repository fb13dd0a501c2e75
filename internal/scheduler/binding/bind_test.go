package binding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/internal/scheduler/placement"
)

// sharing is a pod with volumes, and claims for devices after a colon.
func sharing(name string, volumes []string, devices ...string) placement.Holding {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, v := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v},
		}})
	}
	for _, d := range devices {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{ResourceClaimName: &d})
	}

	return placement.Holding{Pod: pod}
}

func TestChains(t *testing.T) {
	cases := map[string]struct {
		reason string
		held   []placement.Holding
		want   [][]string
	}{
		"Apart": {
			reason: "pods that share nothing are prepared at the same time",
			held:   []placement.Holding{sharing("a", []string{"x"}), sharing("b", []string{"y"}), sharing("c", nil)},
			want:   [][]string{{"a"}, {"b"}, {"c"}},
		},
		"Shared": {
			reason: "those that share a claim one after the other, as they were placed",
			held:   []placement.Holding{sharing("a", nil, "d"), sharing("b", nil), sharing("c", nil, "d")},
			want:   [][]string{{"a", "c"}, {"b"}},
		},
		"Joined": {
			reason: "a pod that shares with two makes them one",
			held:   []placement.Holding{sharing("a", []string{"x"}), sharing("b", []string{"y"}), sharing("c", []string{"x", "y"}), sharing("d", []string{"y"})},
			want:   [][]string{{"a", "b", "c", "d"}},
		},
		"JoinedLate": {
			reason: "a joined chain keeps the order in which its pods were placed",
			held:   []placement.Holding{sharing("a", []string{"x"}), sharing("b", []string{"y"}), sharing("c", []string{"x"}), sharing("d", []string{"y", "x"})},
			want:   [][]string{{"a", "b", "c", "d"}},
		},
		"SameNameOtherKind": {
			reason: "a volume and a device of one name have nothing to do with each other",
			held:   []placement.Holding{sharing("a", []string{"x"}), sharing("b", nil, "x")},
			want:   [][]string{{"a"}, {"b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got [][]string
			for _, chain := range chains(tc.held) {
				var names []string
				for _, m := range chain {
					names = append(names, tc.held[m].Pod.Name)
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nchains(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
