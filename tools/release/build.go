package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/arbor-control/arbor/tools/release/product"
)

// A builder builds programs for others to run: static, and the same from the same
// source wherever that is.
type builder struct {
	// root of the module.
	root    string
	ldflags string
}

// build builds a package into a file.
func (b builder) build(ctx context.Context, p product.Platform, pkg, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", b.ldflags, "-o", to, pkg) //nolint:gosec // that is what it is for
	cmd.Dir, cmd.Stderr = b.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build %s for %s: %w", pkg, p, err)
	}
	if p.OS != "linux" {
		return nil // other systems have no static programs
	}
	if err := checkStatic(to); err != nil {
		return fmt.Errorf("cannot ship %s for %s: %w", pkg, p, err)
	}

	return nil
}

// checkStatic says what a program needs besides a kernel.
func checkStatic(name string) error {
	f, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it is not static: it needs a dynamic linker")
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	if len(libraries) > 0 {
		return fmt.Errorf("it is not static: it needs %v", libraries)
	}

	return nil
}

// machines are the names of architectures in programs.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkPlatform fails for a program of another platform.
func checkPlatform(name string, p product.Platform) error {
	f, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Machine != machines[p.Arch] {
		return fmt.Errorf("it is for %s", f.Machine)
	}

	return nil
}
