package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSliceEvents has writes of this process (wN), events (eN), the deletion of the slice (d) and
// checks (?), which report whether another client has written.
func TestSliceEvents(t *testing.T) {
	cases := map[string]struct{ reason, steps, want string }{
		"Own":      {"Events of own writes are not of another client.", "w1 w2 e1 e2 ?", "no"},
		"Foreign":  {"Others are, once.", "w1 e1 e2 ? ?", "yes no"},
		"Between":  {"Also between two own writes.", "w1 w3 e1 e2 e3 ?", "yes"},
		"Early":    {"An event may come before the answer.", "e1 w1 ?", "no"},
		"Deletion": {"A deletion always is.", "w1 e1 d ? ?", "yes no"},
		"Nothing":  {"Without events there is nothing to check.", "w1 ?", "no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var (
				e   SliceEvents
				got []string
			)
			for step := range strings.FieldsSeq(tc.steps) {
				switch step[0] {
				case 'w':
					e.Wrote(step[1:])
				case 'e':
					e.Saw(step[1:])
				case 'd':
					e.SawDeletion()
				default:
					got = append(got, map[bool]string{true: "yes", false: "no"}[e.Take()])
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
