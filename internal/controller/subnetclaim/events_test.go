package subnetclaim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

func TestDelayOf(t *testing.T) {
	claim := func(phase v1alpha1.ClaimPhase, record string) *v1alpha1.SubnetClaim {
		return &v1alpha1.SubnetClaim{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.BlockAnnotation: record}},
			Status:     v1alpha1.SubnetClaimStatus{Phase: phase},
		}
	}
	cases := map[string]struct {
		reason      string
		before, now *v1alpha1.SubnetClaim
		delay       time.Duration
		want        bool
	}{
		"Status":   {"What the allocator wrote itself is not news.", claim("", ""), claim(v1alpha1.ClaimPending, ""), 0, false},
		"Bound":    {"One claim less waits.", claim(v1alpha1.ClaimPending, ""), claim(v1alpha1.ClaimBound, ""), gather, true},
		"Unbound":  {"One claim more waits.", claim(v1alpha1.ClaimBound, ""), claim(v1alpha1.ClaimPending, ""), gather, true},
		"Record":   {"Another block is wanted.", claim(v1alpha1.ClaimError, "p/x"), claim(v1alpha1.ClaimError, ""), 0, true},
		"Recorded": {"The record of a bound claim changes nothing.", claim(v1alpha1.ClaimBound, ""), claim(v1alpha1.ClaimBound, "p/x"), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if delay, got := delayOf(tc.before, tc.now); got != tc.want || delay != tc.delay {
				t.Errorf("%s\ngot %s, %t; want %s, %t", tc.reason, delay, got, tc.delay, tc.want)
			}
		})
	}
}
