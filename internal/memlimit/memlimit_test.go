package memlimit_test

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/internal/memlimit"
)

func TestApply(t *testing.T) {
	const none = math.MaxInt64
	cases := map[string]struct {
		reason string
		env    map[string]string
		want   int64
		fails  string
	}{
		"Limit":    {"90 percent of the container's memory are for Go.", map[string]string{"ARBOR_MEMORY_LIMIT": "1000000000"}, 900000000, ""},
		"Huge":     {"Without a limit, Kubernetes reports what the node has.", map[string]string{"ARBOR_MEMORY_LIMIT": "9223372036854775807"}, 8301034833169298220, ""},
		"Unset":    {"Outside of a container there is no limit.", nil, none, ""},
		"Override": {"An operator who sets GOMEMLIMIT knows better; the Go runtime has read it.", map[string]string{"ARBOR_MEMORY_LIMIT": "1000000000", "GOMEMLIMIT": "1GiB"}, none, ""},
		"Text":     {"Kubernetes writes bytes, without a unit.", map[string]string{"ARBOR_MEMORY_LIMIT": "1Gi"}, none, `ARBOR_MEMORY_LIMIT "1Gi": it must be a number of bytes`},
		"Zero":     {"No program fits into nothing.", map[string]string{"ARBOR_MEMORY_LIMIT": "0"}, none, `ARBOR_MEMORY_LIMIT "0": it must be a number of bytes above 0`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := debug.SetMemoryLimit(none)
			t.Cleanup(func() { debug.SetMemoryLimit(before) })
			err := memlimit.Apply(func(name string) string { return tc.env[name] })
			if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s\ngot error %v, want %q", tc.reason, err, tc.fails)
			}
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("%s\nthe limit is %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
