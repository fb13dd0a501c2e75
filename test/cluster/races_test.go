package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRaces(t *testing.T) {
	const report = "WARNING: DATA RACE\nRead at 0x00c000094028 by goroutine 8:\n"
	const sign = "==================\n"
	cases := map[string]struct {
		reason, output string
		want           []string
	}{
		"None":   {"A program reports what it likes.", "started\nno DATA RACE here\n", nil},
		"One":    {"A report has a line of signs before and after it.", "started\n" + sign + report + sign + "stopped\n", []string{report}},
		"Two":    {"Each of them counts.", sign + report + sign + sign + report + sign, []string{report, report}},
		"Killed": {"The end may be missing.", sign + report, []string{report}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var l raceLog
			l.look(tc.output)
			if diff := cmp.Diff(tc.want, l.all()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
