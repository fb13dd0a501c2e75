// Package image makes small images for the tests on a real node, with one static program.
package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/tools/release/oci"
)

// Program is where the program is in an image.
const Program = "/program"

// A Builder makes images with the program of test/node/program.
type Builder struct {
	dir     string
	program []byte
}

// New builds the program, without C, since an image has nothing else.
func New(ctx context.Context, dir string) (*Builder, error) {
	file := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, "./test/node/program")
	cmd.Dir, cmd.Env = cluster.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot build the program of test images: %w: %s", err, out)
	}
	data, err := os.ReadFile(file)

	return &Builder{dir: dir, program: data}, err
}

// Write writes an image with a name and tag, run by a user, and returns the archive. Extra
// makes it larger than its program.
func (b *Builder) Write(name, tag, user string, extra ...oci.File) (string, error) {
	i := oci.Image{
		Name: name, Tag: tag, User: user, Created: time.Unix(0, 0).UTC(), Entrypoint: []string{Program, "pause"},
		Variants: []oci.Variant{{OS: "linux", Arch: runtime.GOARCH, Files: append([]oci.File{{Path: Program, Executable: true, Data: b.program}}, extra...)}},
	}
	file, err := os.CreateTemp(b.dir, "*.oci.tar")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = i.Write(file)

	return file.Name(), err
}
