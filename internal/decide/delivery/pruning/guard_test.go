package pruning_test

import (
	"strings"
	"testing"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
)

func TestParsePruneGuard(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		valid  bool
	}{
		"Empty":    {"It is the default.", "empty", true},
		"Off":      {"It turns the guard off.", "off", true},
		"Number":   {"A percentage need not have its sign.", "50", true},
		"Percent":  {"It may.", "50%", true},
		"Zero":     {"Every deletion of several objects is stopped.", "0", true},
		"All":      {"It is the same as empty.", "100%", true},
		"TooMuch":  {"No synthesis deletes more than all objects.", "101", false},
		"Negative": {"A share is not negative.", "-1", false},
		"Fraction": {"A fraction is not a percentage.", "0.5", false},
		"Word":     {"A typing error must not turn the guard off.", "Empty", false},
		"Nothing":  {"Nor must a value that was not filled in.", "", false},
		"Sign":     {"A sign alone has no number.", "%", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := pruning.ParseGuard(tc.text)
			if (err == nil) != tc.valid || err != nil && !strings.Contains(err.Error(), "empty, off or a percentage") {
				t.Errorf("%s\ngot %v, want valid: %t", tc.reason, err, tc.valid)
			}
		})
	}
}

func TestPruneGuard(t *testing.T) {
	cases := map[string]struct {
		reason string
		guard  string
		about  pruning.Counts
		want   string
		text   string
	}{
		"Off":          {"It stops nothing.", "off", pruning.Counts{Deletes: 9, Before: 9}, "", ""},
		"Empty":        {"No manifest is left.", "empty", pruning.Counts{Deletes: 2, Before: 2}, enov1.ReasonEmptySynthesis, "the synthesis has no manifests and would delete 2 objects"},
		"EmptyOne":     {"A single object is not guarded.", "empty", pruning.Counts{Deletes: 1, Before: 1}, "", ""},
		"EmptyAll":     {"All are replaced, which is not empty.", "empty", pruning.Counts{Manifests: 3, Deletes: 3, Before: 3}, "", ""},
		"ShareEmpty":   {"A percentage includes empty.", "100", pruning.Counts{Deletes: 2, Before: 2}, enov1.ReasonEmptySynthesis, "the synthesis has no manifests and would delete 2 objects"},
		"ShareAbove":   {"It is more than allowed.", "50%", pruning.Counts{Manifests: 1, Deletes: 3, Before: 5}, enov1.ReasonPruneShare, "the synthesis would delete 3 of 5 objects, and --prune-guard allows 50%"},
		"ShareExact":   {"As much as allowed is allowed.", "50", pruning.Counts{Manifests: 2, Deletes: 2, Before: 4}, "", ""},
		"ShareOne":     {"A single object is not guarded.", "0", pruning.Counts{Manifests: 1, Deletes: 1, Before: 100}, "", ""},
		"ShareNone":    {"Nothing is deleted.", "0", pruning.Counts{Manifests: 1, Before: 100}, "", ""},
		"ShareZero":    {"Nothing is allowed.", "0", pruning.Counts{Manifests: 99, Deletes: 2, Before: 100}, enov1.ReasonPruneShare, "the synthesis would delete 2 of 100 objects, and --prune-guard allows 0%"},
		"ShareAll":     {"No share is more than all.", "100", pruning.Counts{Manifests: 1, Deletes: 7, Before: 7}, "", ""},
		"ShareUnknown": {"The slices of the synthesis before are gone.", "50", pruning.Counts{Manifests: 1, Deletes: 7}, enov1.ReasonPruneShare, "the synthesis would delete 7 of 7 objects, and --prune-guard allows 50%"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := pruning.ParseGuard(tc.guard)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Blocks(tc.about); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
			if got := g.Explain(tc.about); tc.text != "" && got != tc.text {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.text)
			}
		})
	}
}
