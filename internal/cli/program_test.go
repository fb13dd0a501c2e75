package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestNameProgram starts the program by its names.
func TestNameProgram(t *testing.T) {
	cases := map[string]struct{ reason, program, want string }{
		"Arbor":  {reason: "Help is written for arbor.", program: "arbor", want: "  arbor groups | jq\n  the full arbor, 'arbor groups fit'"},
		"Plugin": {reason: "A plugin shows what users of kubectl type.", program: "kubectl arbor", want: "  kubectl arbor groups | jq\n  the full arbor, 'kubectl arbor groups fit'"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := "  arbor groups | jq\n  the full arbor, 'arbor groups fit'"
			root, groups, fit := &cobra.Command{Use: "arbor"}, &cobra.Command{Use: "groups", Long: text}, &cobra.Command{Use: "fit", Example: text}
			root.AddCommand(groups)
			groups.AddCommand(fit)
			NameProgram(root, tc.program)
			if diff := cmp.Diff([]string{tc.want, tc.want}, []string{groups.Long, fit.Example}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
