package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Args has every flag that AddFlags binds, so that arbor up passes all of them on.
func TestArgsHasEveryFlag(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	args := o.Args()
	fs.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--"+f.Name+"=") }) {
			t.Errorf("--%s is not in Args: %q", f.Name, args)
		}
	})
	parsed := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(parsed)
	if err := parsed.Parse(args); err != nil {
		t.Error(err)
	}
}
