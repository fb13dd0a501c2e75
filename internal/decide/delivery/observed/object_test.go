package observed_test

import (
	"testing"

	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
)

func TestIsSame(t *testing.T) {
	last := observed.Write{UID: "u", Version: "5", OwnFields: "f"}
	cases := map[string]struct {
		reason string
		last   observed.Write
		seen   observed.Object
		want   bool
	}{
		"Unknown":  {"Without a watch, nothing is known that differs.", last, observed.Object{}, true},
		"Unserved": {"The watch sees nothing, so the object must be read.", last, observed.Object{Unserved: true, Known: true}, false},
		"Deleted":  {"It must be created again.", last, observed.Object{Known: true}, false},
		"Version":  {"The watch has seen the write.", last, observed.Object{Known: true, Present: true, Version: "5"}, true},
		"Behind":   {"The watch has not seen the write yet.", last, observed.Object{Known: true, Present: true, Version: "4", Own: "other"}, true},
		"Status":   {"A newer version in which we own the same fields has the same values.", last, observed.Object{Known: true, Present: true, Version: "6", UID: "u", Own: "f"}, true},
		"Fields":   {"Another client has taken a field.", last, observed.Object{Known: true, Present: true, Version: "6", UID: "u", Own: "g"}, false},
		"Replaced": {"It is another object.", last, observed.Object{Known: true, Present: true, Version: "6", UID: "v", Own: "f"}, false},
		"Deleting": {"It must be created again once it is gone.", last, observed.Object{Known: true, Present: true, Version: "6", UID: "u", Own: "f", Deleting: true}, false},
		"Patched":  {"Only the server knows what a patch owns.", observed.Write{UID: "u", Version: "5"}, observed.Object{Known: true, Present: true, Version: "6", UID: "u"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.last.IsSame(tc.seen); got != tc.want {
				t.Errorf("%s\nIsSame(%+v) = %v", tc.reason, tc.seen, got)
			}
		})
	}
}

func TestIsStill(t *testing.T) {
	cases := map[string]struct {
		reason  string
		seen    observed.Object
		version string
		want    bool
	}{
		"Unknown": {"Without a watch, the object must be read.", observed.Object{}, "", false},
		"Absent":  {"It did not exist, and still does not.", observed.Object{Known: true}, "", true},
		"Deleted": {"It existed.", observed.Object{Known: true}, "5", false},
		"Created": {"It did not exist.", observed.Object{Known: true, Present: true, Version: "5"}, "", false},
		"Same":    {"It is that version.", observed.Object{Known: true, Present: true, Version: "5"}, "5", true},
		"Behind":  {"The watch has not seen that version yet.", observed.Object{Known: true, Present: true, Version: "4"}, "5", true},
		"Newer":   {"It was changed since.", observed.Object{Known: true, Present: true, Version: "6"}, "5", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.IsStill(tc.version); got != tc.want {
				t.Errorf("%s\nIsStill(%q) = %v", tc.reason, tc.version, got)
			}
		})
	}
}

func TestIsTerminating(t *testing.T) {
	cases := map[string]struct {
		reason string
		seen   observed.Object
		want   bool
	}{
		"No":     {"It stays.", observed.Object{Version: "6"}, false},
		"Yes":    {"It was deleted after it was written.", observed.Object{Version: "6", Deleting: true}, true},
		"Before": {"An earlier version was deleted, and another object was written since.", observed.Object{Version: "4", Deleting: true}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.IsTerminating("5"); got != tc.want {
				t.Errorf("%s\nIsTerminating = %v", tc.reason, got)
			}
		})
	}
}

func TestOlder(t *testing.T) {
	cases := map[string]struct {
		reason, a, b string
		want         bool
	}{
		"Older":   {reason: "They are numbers, not texts.", a: "9", b: "10", want: true},
		"Same":    {reason: "The same is not older.", a: "10", b: "10"},
		"Newer":   {reason: "Nor is a newer one.", a: "11", b: "10"},
		"Unknown": {reason: "A text that is not a number cannot be compared.", a: "", b: "10"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := observed.Older(tc.a, tc.b); got != tc.want {
				t.Errorf("%s\nolder(%q, %q): %t", tc.reason, tc.a, tc.b, got)
			}
		})
	}
}
