package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// Another manager that gets the arguments has the same options, whichever flags there are.
func TestArgs(t *testing.T) {
	type options struct {
		Synthesis SynthesisOptions
		Delivery  DeliveryOptions
	}
	add := func(o *options) func(*pflag.FlagSet) {
		return func(fs *pflag.FlagSet) {
			o.Synthesis.AddFlags(fs)
			o.Delivery.AddFlags(fs)
		}
	}
	changed := map[string]string{
		"string": "other", "bool": "true", "int": "77", "duration": "77s", "stringSlice": `a,"b,c"`, "stringToString": `"a=b,c",d=e=f`,
	}
	var want options
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(&want)(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := changed[f.Value.Type()]
		if !ok {
			t.Fatalf("--%s is a %s: add a value to this test, and see whether flagArgs can write it", f.Name, f.Value.Type())
		}
		if err := fs.Set(f.Name, value); err != nil {
			t.Fatal(err)
		}
	})
	args := append(want.Synthesis.Args(), want.Delivery.Args()...)
	fs.VisitAll(func(f *pflag.Flag) {
		n := 0
		for _, arg := range args {
			if strings.HasPrefix(arg, "--"+f.Name+"=") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("--%s is there %d times in %q", f.Name, n, args)
		}
	})
	var got options
	parsed := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(&got)(parsed)
	if err := parsed.Parse(args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
