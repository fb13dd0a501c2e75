package ownership_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
)

// A ledger has what was moved, and no more.
func TestLedger(t *testing.T) {
	record := func(name string) ownership.Record {
		return ownership.Record{Kind: "Deployment", Name: name, Fields: fields.Record{To: fields.Identity{Manager: "eno", Operation: fields.Apply}}}
	}
	type object struct{ kept, moved []string }
	tests := map[string]struct {
		reason  string
		objects []object
		torn    string
		want    []string
	}{
		"Several":   {reason: "one file has all of a run", objects: []object{{[]string{"a"}, []string{"a"}}, {[]string{"b"}, []string{"b"}}}, want: []string{"a", "b"}},
		"Nothing":   {reason: "there is no file without a record", objects: []object{{}, {}}},
		"GivenUp":   {reason: "what was not done needs no undoing", objects: []object{{[]string{"a"}, []string{"a"}}, {[]string{"b"}, nil}}, want: []string{"a"}},
		"AllUp":     {reason: "nor is there a file then", objects: []object{{[]string{"a"}, nil}}},
		"SecondTry": {reason: "of several tries, only the one that worked is left", objects: []object{{[]string{"old", "new"}, []string{"new"}}, {[]string{"b"}, []string{"b"}}}, want: []string{"new", "b"}},
		"Torn":      {reason: "a record that was not finished is left out", objects: []object{{[]string{"a"}, []string{"a"}}}, torn: `{"kind":"Depl`, want: []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			l, err := ownership.CreateLedger(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range tc.objects {
				for _, name := range o.kept {
					if err := l.Keep(t.Context(), record(name)); err != nil {
						t.Fatal(err)
					}
				}
				var moved []ownership.Record
				for _, name := range o.moved {
					moved = append(moved, record(name))
				}
				if err := l.Settle(moved); err != nil {
					t.Fatal(err)
				}
			}
			if name := l.Close(); name == "" {
				if _, err := os.Stat(path); !os.IsNotExist(err) || len(tc.want) > 0 {
					t.Errorf("%s: there is no name; the file is there: %t, want records %v", tc.reason, err == nil, tc.want)
				}

				return
			}
			tear(t, path, tc.torn)
			all, err := ownership.ReadRecords(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range all {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// tear adds what a process had written when it was killed.
func tear(t *testing.T, path, half string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, half...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
