package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/arbor-control/arbor/tools/release/licence"
	"github.com/arbor-control/arbor/tools/release/product"
	"github.com/arbor-control/arbor/tools/release/sbom"
)

const checksums = "SHA256SUMS"

// makeRelease writes a folder with all that is released: programs, their SBOMs,
// the plugin of kubectl, the images, the licences, the checksums of all these, and their signature if there is a key.
func (o options) makeRelease(ctx context.Context) error {
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it first, so that nothing of another release gets into this one", o.out)
	}
	// A key that cannot be used is found before anything is built.
	key, err := readKey(o.signKey)
	if err != nil {
		return err
	}
	all, err := o.buildAll(ctx)
	if err != nil {
		return err
	}
	var notices bytes.Buffer
	if err := licence.Notices(&notices, licence.Merge(all...)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, filepath.Base(product.Notices)), notices.Bytes(), 0o644); err != nil { //nolint:gosec // what is released may be read
		return err
	}
	if err := o.makeImages(ctx); err != nil {
		return err
	}

	if err := sum(o.out); err != nil {
		return err
	}
	if key == nil {
		fmt.Fprintf(o.progress, "%s is not signed: name a key with COSIGN_KEY=FILE\n", checksums)

		return nil
	}

	return sign(o.out, key)
}

// buildAll builds the programs and the plugin for their platforms, and returns what they are made of.
func (o options) buildAll(ctx context.Context) ([][]licence.Module, error) {
	var all [][]licence.Module
	for _, p := range o.platforms {
		modules, err := o.buildPrograms(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, modules)
	}
	plugin, err := o.makePlugin(ctx)

	return append(all, plugin...), err
}

// buildPrograms builds all for one platform, and returns what they are made of.
func (o options) buildPrograms(ctx context.Context, p product.Platform) ([]licence.Module, error) {
	commands := product.InRelease
	modules, err := o.linked(ctx, p, commands)
	if err != nil {
		return nil, err
	}
	for _, name := range commands {
		file := filepath.Join(o.out, fmt.Sprintf("%s_%s_%s", name, p.OS, p.Arch))
		if err := o.build(ctx, p, "./cmd/"+name, file); err != nil {
			return nil, err
		}
		if err := o.bill(name, file, file, modules); err != nil {
			return nil, err
		}
	}

	return modules, nil
}

// linked returns the modules of commands. It fails for one that must not be shipped.
func (o options) linked(ctx context.Context, p product.Platform, commands []string) ([]licence.Module, error) {
	modules, err := licence.Linked(ctx, o.root, p.OS, p.Arch, product.Packages(commands)...)
	if err != nil {
		return nil, err
	}
	if wrong := licence.Check(modules); len(wrong) > 0 {
		return nil, errors.New(wrong[0])
	}

	return modules, nil
}

// bill writes the SBOM of a program next to what it is released as.
func (o options) bill(name, file, released string, modules []licence.Module) error {
	var b bytes.Buffer
	p := sbom.Program{Name: name, Version: o.version, File: file, Created: o.created, License: "Apache-2.0", Licences: func(path string) []string {
		if i := slices.IndexFunc(modules, func(m licence.Module) bool { return m.Path == path }); i >= 0 {
			return modules[i].IDs()
		}

		return nil
	}}
	if err := p.Write(&b); err != nil {
		return err
	}
	fmt.Fprintln(o.progress, filepath.Base(released))

	return os.WriteFile(released+".cdx.json", b.Bytes(), 0o644) //nolint:gosec // what is released may be read
}

// sum writes the checksums of all files of a folder, for sha256sum -c.
func sum(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}

	return os.WriteFile(filepath.Join(dir, checksums), b.Bytes(), 0o644) //nolint:gosec // what is released may be read
}
