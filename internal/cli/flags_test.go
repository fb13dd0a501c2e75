package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestDryRun writes the flag in all ways.
func TestDryRun(t *testing.T) {
	cases := map[string]struct {
		reason, flag string
		want         bool
		fails        string
	}{
		"Absent":  {reason: "Without it, things are changed."},
		"Alone":   {reason: "As before.", flag: "--dry-run", want: true},
		"Server":  {reason: "As for kubectl.", flag: "--dry-run=server", want: true},
		"True":    {reason: "As a boolean.", flag: "--dry-run=true", want: true},
		"None":    {reason: "As for kubectl.", flag: "--dry-run=none"},
		"False":   {reason: "As a boolean.", flag: "--dry-run=false"},
		"Client":  {reason: "The client cannot check it.", flag: "--dry-run=client", fails: "use --dry-run=server"},
		"Rubbish": {reason: "There is nothing else.", flag: "--dry-run=maybe", fails: "it must be server or none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got bool
			cmd := &cobra.Command{Use: "c"}
			addDryRun(cmd.Flags(), &got, "check it")
			err := cmd.ParseFlags(strings.Fields(tc.flag))
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) || got != tc.want {
				t.Errorf("%s\n%t, %v", tc.reason, got, err)
			}
		})
	}
}

// TestOtherNames types flags and nouns with the words of other commands and of kubectl.
func TestOtherNames(t *testing.T) {
	cases := map[string]struct{ reason, typed, is, value string }{
		"PlanManager":    {"The manager is --manager everywhere.", "fields plan --manager eno", "to", "eno"},
		"MigrateKubectl": {"kubectl calls it so.", "fields migrate --field-manager eno", "to", "eno"},
		"ShowKubectl":    {"Here, too.", "fields show --field-manager eno", "manager", "eno"},
		"CheckKubectl":   {"And here.", "fields check --field-manager eno", "manager", "eno"},
		"UndoFile":       {"kubectl has another --record.", "fields undo --undo-file f", "record", "f"},
		"MigrateFile":    {"It is the same file.", "fields migrate --undo-file f", "record", "f"},
		"DiffTo":         {"As rollback has it.", "delivery diff --to previous", "synthesis", "previous"},
		"PlanRows":       {"--all of fields migrate means objects.", "fields plan --show-all", "all", "true"},
		"ShowRows":       {"The same word.", "pools show --show-all", "all", "true"},
		"Old":            {"The names of earlier releases stay.", "delivery diff --synthesis previous", "synthesis", "previous"},
		"Compositions":   {"Users know the kind.", "compositions diff --to previous", "synthesis", "previous"},
		"Pool":           {"In the singular.", "pool show --show-all", "all", "true"},
	}
	streams := genericiooptions.NewTestIOStreamsDiscard()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "arbor"}
			root.AddCommand(NewFields(streams), NewPools(streams), NewDelivery(streams), NewGroups(streams, Scheduling{}))
			cmd, rest, err := root.Find(strings.Fields(tc.typed))
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if got := cmd.Flags().Lookup(tc.is).Value.String(); got != tc.value {
				t.Errorf("%s\n--%s is %q, want %q", tc.reason, tc.is, got, tc.value)
			}
		})
	}
}

// TestShow needs a name: without one, it would show everything.
func TestShow(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	for name, noun := range map[string]*cobra.Command{"Groups": NewGroups(streams, Scheduling{}), "Delivery": NewDelivery(streams)} {
		t.Run(name, func(t *testing.T) {
			show, _, err := noun.Find([]string{"show"})
			if err != nil || show.Name() != "show" {
				t.Fatalf("there is no show: %v", err)
			}
			if err := show.Args(show, nil); err == nil || !strings.Contains(err.Error(), "no name is given") {
				t.Errorf("error %v", err)
			}
			if err := show.Args(show, []string{"a"}); err != nil {
				t.Error(err)
			}
		})
	}
}
