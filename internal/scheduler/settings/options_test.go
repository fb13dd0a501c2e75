package settings

import (
	"math"
	"testing"
)

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
