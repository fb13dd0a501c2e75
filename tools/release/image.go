package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/arbor-control/arbor/tools/release/licence"
	"github.com/arbor-control/arbor/tools/release/oci"
	"github.com/arbor-control/arbor/tools/release/product"
)

// makeImages writes images into a folder: those with these names, or all.
func (o options) makeImages(ctx context.Context, names ...string) error {
	for _, name := range names {
		if !slices.ContainsFunc(product.Images, func(i product.Image) bool { return i.Name == name }) {
			return fmt.Errorf("%q is not an image; an example of one is %s", name, product.Images[0].Name)
		}
	}
	for _, i := range product.Images {
		if len(names) > 0 && !slices.Contains(names, i.Name) {
			continue
		}
		if err := o.makeImage(ctx, i); err != nil {
			return err
		}
	}

	return nil
}

// makeImage builds the programs of an image for each platform, and the image.
func (o options) makeImage(ctx context.Context, i product.Image) error {
	dir, err := os.MkdirTemp("", "arbor-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	image := o.describe(i)
	module := builder{root: filepath.Join(o.root, i.Module), ldflags: o.ldflags}
	packages := i.Packages()
	for _, p := range o.platforms {
		files, err := o.texts(ctx, p, i)
		if err != nil {
			return err
		}
		for n, name := range i.Commands {
			at, err := o.program(ctx, module, p, packages[n], filepath.Join(dir, p.Arch, name))
			if err != nil {
				return err
			}
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			files = append(files, oci.File{Path: "/" + name, Executable: true, Data: data})
		}
		image.Variants = append(image.Variants, oci.Variant{OS: p.OS, Arch: p.Arch, Files: files})
	}

	return o.writeImage(image, filepath.Join(o.out, i.Name+".oci.tar"))
}

// program returns the file of a program: one that was built before, or one that is built now.
func (o options) program(ctx context.Context, module builder, p product.Platform, pkg, to string) (string, error) {
	if o.programs == "" {
		return to, module.build(ctx, p, pkg, to)
	}
	at := filepath.Join(o.programs, filepath.Base(to))
	if err := errors.Join(checkStatic(at), checkPlatform(at, p)); err != nil {
		return "", fmt.Errorf("cannot use %s of --programs for %s: %w", at, p, err)
	}

	return at, nil
}

// describe is an image without what is in it.
func (o options) describe(i product.Image) oci.Image {
	labels := i.Labels()
	labels[product.VersionLabel], labels[product.CreatedLabel] = o.version, o.created.Format(time.RFC3339)
	if o.revision != "" {
		labels[product.RevisionLabel] = o.revision
	}

	return oci.Image{Name: o.registry + "/" + i.Name, Tag: o.version, Created: o.created, User: product.User, Entrypoint: []string{i.Entrypoint()}, Labels: labels}
}

func (o options) writeImage(image oci.Image, to string) error {
	var b bytes.Buffer
	digest, err := image.Write(&b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // what is released may be read
		return err
	}
	if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil { //nolint:gosec // what is released may be read
		return err
	}
	fmt.Fprintf(o.progress, "%-40s %4d MB  %s:%s %s\n", filepath.Base(to), b.Len()/1000000, image.Name, image.Tag, digest)

	return nil
}

// texts are the licences that go along: Arbor's own, and those of others.
func (o options) texts(ctx context.Context, p product.Platform, i product.Image) ([]oci.File, error) {
	own, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	modules, err := licence.Linked(ctx, filepath.Join(o.root, i.Module), p.OS, p.Arch, i.Packages()...)
	if err != nil {
		return nil, err
	}
	var others bytes.Buffer
	if err := licence.Notices(&others, modules); err != nil {
		return nil, err
	}

	return []oci.File{{Path: product.License, Data: own}, {Path: product.Notices, Data: others.Bytes()}}, nil
}
