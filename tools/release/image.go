package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/arbor-control/arbor/tools/release/licence"
	"github.com/arbor-control/arbor/tools/release/oci"
	"github.com/arbor-control/arbor/tools/release/product"
)

// makeImage builds the programs of the image for each platform, and the image.
func (o options) makeImage(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "arbor-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	commands := product.InImage
	image := o.describe()
	for _, p := range product.Platforms {
		files, err := o.texts(ctx, p, commands)
		if err != nil {
			return err
		}
		for _, name := range commands {
			at := filepath.Join(dir, p.Arch, name)
			if err := o.build(ctx, p, "./cmd/"+name, at); err != nil {
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

	return o.writeImage(image)
}

// describe is the image without what is in it.
func (o options) describe() oci.Image {
	labels := maps.Clone(product.Labels)
	labels[product.VersionLabel], labels[product.CreatedLabel] = o.version, o.created.Format(time.RFC3339)
	if o.revision != "" {
		labels[product.RevisionLabel] = o.revision
	}

	return oci.Image{Name: o.image, Tag: o.version, Created: o.created, User: product.User, Entrypoint: []string{product.Entrypoint}, Labels: labels}
}

func (o options) writeImage(image oci.Image) error {
	var b bytes.Buffer
	digest, err := image.Write(&b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil { //nolint:gosec // what is released may be read
		return err
	}
	if err := os.WriteFile(o.out, b.Bytes(), 0o644); err != nil { //nolint:gosec // what is released may be read
		return err
	}
	fmt.Fprintf(o.progress, "%-40s %4d MB  %s:%s %s\n", filepath.Base(o.out), b.Len()/1000000, image.Name, image.Tag, digest)

	return nil
}

// makeNotices writes the licences of others that go along with the image.
func (o options) makeNotices(ctx context.Context) error {
	files, err := o.texts(ctx, product.Platforms[0], product.InImage)
	if err != nil {
		return err
	}

	return os.WriteFile(o.out, files[1].Data, 0o644) //nolint:gosec // what is released may be read
}

// texts are the licences that go along: Arbor's own, and those of others.
func (o options) texts(ctx context.Context, p product.Platform, commands []string) ([]oci.File, error) {
	own, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	modules, err := licence.Linked(ctx, o.root, p.OS, p.Arch, product.Packages(commands)...)
	if err != nil {
		return nil, err
	}
	var others bytes.Buffer
	if err := licence.Notices(&others, modules); err != nil {
		return nil, err
	}

	return []oci.File{{Path: product.License, Data: own}, {Path: product.Notices, Data: others.Bytes()}}, nil
}
