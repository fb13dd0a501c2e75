package manager

import (
	"encoding/csv"
	"maps"
	"slices"
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
		case "stringSlice":
			value = strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
		case "stringToString":
			value = pairs(fs, f.Name)
		}
		if value != "" || f.Value.Type() != "stringToString" { // which rejects an empty value
			args = append(args, "--"+f.Name+"="+value)
		}
	})

	return args
}

// pairs returns the value of a map flag as its parser reads it. Its own String removes white space
// at the end.
func pairs(fs *pflag.FlagSet, name string) string {
	values, err := fs.GetStringToString(name)
	if err != nil || len(values) == 0 {
		return ""
	}
	var fields []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, key+"="+values[key])
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // a strings.Builder takes everything
	w.Flush()

	return strings.TrimSuffix(b.String(), "\n")
}
