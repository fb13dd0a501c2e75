package manager

import (
	"strings"

	"github.com/spf13/pflag"
)

// flagArgs are the arguments that set all flags that add binds to their current values.
func flagArgs(add func(*pflag.FlagSet)) []string {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(fs)
	var args []string
	fs.VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		switch f.Value.Type() {
		case "stringSlice", "stringToString":
			value = strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
		}
		if value != "" || f.Value.Type() != "stringToString" { // which rejects an empty value
			args = append(args, "--"+f.Name+"="+value)
		}
	})

	return args
}
