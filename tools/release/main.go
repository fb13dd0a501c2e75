// Release makes what others run Arbor from: the container images, and everything
// that goes along with a release. `make image` and `make release` call it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/arbor-control/arbor/tools/release/product"
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
	registry          string
	platforms         []product.Platform
	out               string
	// programs is a folder of programs that are built already, for images of one platform.
	programs string
	// signKey is the file with the key that a release is signed with; "" if it is not signed.
	signKey string
	// baseURL is where the files of a release are downloaded from; "" if that is not known.
	baseURL  string
	progress io.Writer
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o := options{progress: stdout}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "root of the module")
	flags.StringVar(&o.ldflags, "ldflags", "", "flags for the linker")
	flags.StringVar(&o.version, "version", "development", "version, as people know it")
	flags.StringVar(&o.revision, "revision", "", "commit that it is built from")
	flags.StringVar(&o.registry, "registry", "localhost", "first part of the names of the images, once they are loaded")
	platforms := flags.String("platforms", "", "platforms, such as linux/amd64; all if it is empty")
	flags.StringVar(&o.out, "out", "", "the directory of images or of a release that is written")
	flags.StringVar(&o.programs, "programs", "", "folder of programs that are built already, for images of one platform; they are built if it is empty")
	flags.StringVar(&o.signKey, "sign-key", "", "file with the private key, P-256 in PEM, that the checksums of a release are signed with; unsigned if it is empty")
	flags.StringVar(&o.baseURL, "base-url", "", "URL of the directory that the files of a release are downloaded from, for the krew manifest; there is none if it is empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.out == "" {
		return fmt.Errorf("--out is empty: say where to write the %s", flags.Arg(0))
	}
	var err error
	if o.platforms, err = chosen(*platforms); err != nil {
		return err
	}
	if o.created, err = epoch(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}

	switch flags.Arg(0) {
	case "images":
		return o.makeImages(ctx, flags.Args()[1:]...)
	case "release":
		return o.makeRelease(ctx)
	default:
		return fmt.Errorf("%q is nothing that can be made; known are images and release", flags.Arg(0))
	}
}

// chosen are the platforms that are named, all if none is.
func chosen(names string) ([]product.Platform, error) {
	if names == "" {
		return product.Platforms, nil
	}
	var all []product.Platform
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(product.Platforms, func(p product.Platform) bool { return p.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("--platforms %q: it must be some of %v", names, product.Platforms)
		}
		all = append(all, product.Platforms[at])
	}

	return all, nil
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
