// Release makes what others run Arbor from: the container image, and everything
// that goes along with a release. `make image` and `make release` call it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// options say which version of what is made, and where to.
type options struct {
	builder

	version, revision string
	created           time.Time
	image             string
	out               string
	progress          io.Writer
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o := options{progress: stdout}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "root of the module")
	flags.StringVar(&o.ldflags, "ldflags", "", "flags for the linker")
	flags.StringVar(&o.version, "version", "development", "version, as people know it")
	flags.StringVar(&o.revision, "revision", "", "commit that it is built from")
	flags.StringVar(&o.image, "image", "localhost/arbor-manager", "name of the image, once it is loaded")
	flags.StringVar(&o.out, "out", "", "what is written: the archive of image, the file of notices, the folder of release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.out == "" {
		return fmt.Errorf("--out is empty: say where to write the %s", flags.Arg(0))
	}
	if flags.Arg(0) == "notices" {
		return o.makeNotices(ctx)
	}
	var err error
	if o.created, err = epoch(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}

	switch flags.Arg(0) {
	case "image":
		return o.makeImage(ctx)
	case "release":
		return o.makeRelease(ctx)
	default:
		return fmt.Errorf("%q is nothing that can be made; known are image, notices and release", flags.Arg(0))
	}
}

// epoch is the time that everything is said to be made at. It is told, not asked
// for: the same commit is the same release.
func epoch(text string) (time.Time, error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: it must be the time of the commit, in seconds: git log -1 --format=%%ct", text)
	}

	return time.Unix(seconds, 0).UTC(), nil
}
