// Package oci writes container images as files, without a daemon, a registry or a
// base image.
//
// Write writes an archive in the layout of the Open Container Initiative, with a
// manifest for each platform. docker load, podman load, skopeo and containerd
// read it. The same Image is always the same archive, byte for byte. Manifests,
// configurations, digests and the layout are written by go-containerregistry; this
// package adds the files of the layer and the archive around the layout.
package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An Image is what is written.
type Image struct {
	// Name and Tag are what it is called once it is loaded.
	Name, Tag string
	Created   time.Time
	// User is the number of the user, and of the group, that it runs as.
	User       string
	Entrypoint []string
	Labels     map[string]string
	// Variants are one for each platform. Readers that do not support platforms get
	// the first one.
	Variants []Variant
}

// A Variant is an image for one platform.
type Variant struct {
	OS, Arch string
	Files    []File
}

// A File of an image. It belongs to root and is read-only.
type File struct {
	// Path from the root, such as /etc/hosts.
	Path       string
	Executable bool
	Data       []byte
}

// Write writes the image as an archive, and returns the digest of its index, which
// identifies the image in registries.
func (i Image) Write(w io.Writer) (digest string, err error) {
	if len(i.Variants) == 0 {
		return "", fmt.Errorf("cannot write image %s: it is for no platform", i.Name)
	}
	var index v1.ImageIndex = empty.Index
	var first v1.Image
	for _, v := range i.Variants {
		image, err := i.variant(v)
		if err != nil {
			return "", fmt.Errorf("cannot write image %s for %s/%s: %w", i.Name, v.OS, v.Arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: v.OS, Architecture: v.Arch}}})
		first = cmp.Or(first, image)
	}
	index = mutate.Annotations(index, i.Labels).(v1.ImageIndex) //nolint:forcetypeassert // it returns the type that it gets
	hash, err := index.Digest()
	if err != nil {
		return "", err
	}

	return hash.String(), i.archive(w, index, first)
}

// archive writes the layout of an index as a tar.
func (i Image) archive(w io.Writer, index v1.ImageIndex, first v1.Image) error {
	dir, err := os.MkdirTemp("", "arbor-oci-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	names := map[string]string{"io.containerd.image.name": i.Name + ":" + i.Tag, "org.opencontainers.image.ref.name": i.Tag}
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: names}})
	if _, err := layout.Write(dir, top); err != nil {
		return err
	}
	legacy, err := i.legacy(first)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), legacy, 0o600); err != nil {
		return err
	}

	return pack(w, dir, i.Created)
}

// legacy is manifest.json: how Docker lists images if it does not read the layout. It
// has one platform only.
func (i Image) legacy(image v1.Image) ([]byte, error) {
	m, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	blob := func(d v1.Descriptor) string { return path.Join("blobs", d.Digest.Algorithm, d.Digest.Hex) }

	return json.Marshal(tarball.Manifest{{Config: blob(m.Config), RepoTags: []string{i.Name + ":" + i.Tag}, Layers: []string{blob(m.Layers[0])}}})
}

// variant is the image for one platform, of one layer.
func (i Image) variant(v Variant) (v1.Image, error) {
	plain, err := i.layer(v.Files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain)), nil },
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: i.Created}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		OS: v.OS, Architecture: v.Arch, Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: i.User, Entrypoint: i.Entrypoint, WorkingDir: "/", Labels: i.Labels},
	})
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make image"}})
	if err != nil {
		return nil, err
	}

	return mutate.Annotations(image, i.Labels).(v1.Image), nil //nolint:forcetypeassert // it returns the type that it gets
}

// layer is the files as a tar, sorted, with the directories that they are in.
func (i Image) layer(files []File) ([]byte, error) {
	headers, data := map[string]*tar.Header{}, map[string][]byte{}
	for _, f := range files {
		name := strings.TrimPrefix(path.Clean(f.Path), "/")
		if headers[name] != nil || !path.IsAbs(f.Path) {
			return nil, fmt.Errorf("%s: it is there twice, or its path does not begin with /", f.Path)
		}
		mode := int64(0o444)
		if f.Executable {
			mode = 0o555
		}
		headers[name], data[name] = &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(f.Data)), Mode: mode}, f.Data
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			headers[dir] = &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}
		}
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, h := range slices.SortedFunc(maps.Values(headers), func(a, b *tar.Header) int { return cmp.Compare(a.Name, b.Name) }) {
		if err := write(t, h, data[h.Name], i.Created); err != nil {
			return nil, err
		}
	}
	err := t.Close()

	return b.Bytes(), err
}

// pack writes a directory as a tar, sorted, without its times and owners.
func pack(w io.Writer, dir string, at time.Time) error {
	t := tar.NewWriter(w)
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if e.IsDir() {
			return write(t, &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, nil, at)
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}

		return write(t, &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644}, data, at)
	})

	return errors.Join(err, t.Close())
}

// write adds a file to a tar. It belongs to root.
func write(t *tar.Writer, h *tar.Header, data []byte, at time.Time) error {
	h.ModTime, h.Format = at, tar.FormatUSTAR
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(data)

	return err
}
