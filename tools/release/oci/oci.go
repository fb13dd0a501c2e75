// Package oci writes container images as files, from nothing but what goes into
// them: no daemon, no registry and no base image is asked.
//
// Write writes an archive in the layout of the Open Container Initiative, with a
// manifest for each platform. docker load, podman load, skopeo and containerd
// read it. The same Image is always the same archive, byte for byte.
package oci

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
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
	// Variants are one for each platform. Readers who know nothing of platforms get
	// the first one.
	Variants []Variant
}

// A Variant is an image for one platform.
type Variant struct {
	OS, Arch string
	Files    []File
}

// A File of an image. Everything belongs to root, and nobody may write.
type File struct {
	// Path from the root, such as /etc/hosts.
	Path       string
	Executable bool
	Data       []byte
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type config struct {
	platform

	Created time.Time  `json:"created"`
	Config  runtime    `json:"config"`
	RootFS  rootFS     `json:"rootfs"`
	History []happened `json:"history"`
}

// The names of fields are Docker's.
type runtime struct {
	User       string            `json:"User"`
	Entrypoint []string          `json:"Entrypoint"`
	WorkingDir string            `json:"WorkingDir"`
	Labels     map[string]string `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type happened struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// saved is how Docker lists images where it does not know the layout.
type saved struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// Write writes the image as an archive, and returns the digest of its index,
// which is what the image is known by in registries.
func (i Image) Write(w io.Writer) (digest string, err error) {
	if len(i.Variants) == 0 {
		return "", fmt.Errorf("cannot write image %s: it is for no platform", i.Name)
	}
	a := &archive{files: map[string][]byte{}}
	top := index{SchemaVersion: 2, MediaType: indexType, Annotations: i.Labels}
	var old []saved
	for _, v := range i.Variants {
		m, err := i.variant(a, v)
		if err != nil {
			return "", err
		}
		d, err := a.blob(manifestType, m)
		if err != nil {
			return "", err
		}
		d.Platform = &platform{v.Arch, v.OS}
		top.Manifests = append(top.Manifests, d)
		if old == nil {
			old = []saved{{Config: blobPath(m.Config.Digest), RepoTags: []string{i.Name + ":" + i.Tag}, Layers: []string{blobPath(m.Layers[0].Digest)}}}
		}
	}
	d, err := a.blob(indexType, top)
	if err != nil {
		return "", err
	}
	d.Annotations = map[string]string{"io.containerd.image.name": i.Name + ":" + i.Tag, "org.opencontainers.image.ref.name": i.Tag}
	for name, content := range map[string]any{
		"oci-layout":    map[string]string{"imageLayoutVersion": "1.0.0"},
		"index.json":    index{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{d}},
		"manifest.json": old,
	} {
		if a.files[name], err = json.Marshal(content); err != nil {
			return "", err
		}
	}

	return d.Digest, a.write(w, i.Created)
}

// variant adds the layer and the configuration for one platform.
func (i Image) variant(a *archive, v Variant) (manifest, error) {
	plain, err := layer(v.Files, i.Created)
	if err != nil {
		return manifest{}, fmt.Errorf("cannot write the layer for %s/%s: %w", v.OS, v.Arch, err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return manifest{}, err
	}
	if _, err := z.Write(plain); err != nil {
		return manifest{}, err
	}
	if err := z.Close(); err != nil {
		return manifest{}, err
	}
	c, err := a.blob(configType, config{
		platform: platform{v.Arch, v.OS}, Created: i.Created,
		Config:  runtime{User: i.User, Entrypoint: i.Entrypoint, WorkingDir: "/", Labels: i.Labels},
		RootFS:  rootFS{Type: "layers", DiffIDs: []string{digestOf(plain)}},
		History: []happened{{Created: i.Created, CreatedBy: "make image"}},
	})

	return manifest{
		SchemaVersion: 2, MediaType: manifestType, Config: c,
		Layers: []descriptor{a.raw(layerType, packed.Bytes())}, Annotations: i.Labels,
	}, err
}

// layer is the files as a tar, with the folders that they are in.
func layer(files []File, created time.Time) ([]byte, error) {
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
			headers[dir+"/"] = &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}
		}
	}

	return pack(headers, data, created)
}

// pack writes a tar: sorted, at one time, and all of it root's.
func pack(headers map[string]*tar.Header, data map[string][]byte, at time.Time) ([]byte, error) {
	sorted := make([]*tar.Header, 0, len(headers))
	for _, h := range headers {
		h.ModTime, h.Format = at, tar.FormatUSTAR
		sorted = append(sorted, h)
	}
	slices.SortFunc(sorted, func(a, b *tar.Header) int { return cmp.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, h := range sorted {
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(data[h.Name]); err != nil {
			return nil, err
		}
	}
	err := t.Close()

	return b.Bytes(), err
}

// An archive is the files of a layout.
type archive struct{ files map[string][]byte }

// blob adds a document.
func (a *archive) blob(mediaType string, content any) (descriptor, error) {
	data, err := json.Marshal(content)

	return a.raw(mediaType, data), err
}

// raw adds data, under its digest.
func (a *archive) raw(mediaType string, data []byte) descriptor {
	d := digestOf(data)
	a.files[blobPath(d)] = data

	return descriptor{MediaType: mediaType, Digest: d, Size: len(data)}
}

func (a *archive) write(w io.Writer, at time.Time) error {
	headers := map[string]*tar.Header{
		"blobs/":        {Typeflag: tar.TypeDir, Name: "blobs/", Mode: 0o755},
		"blobs/sha256/": {Typeflag: tar.TypeDir, Name: "blobs/sha256/", Mode: 0o755},
	}
	for name, data := range a.files {
		headers[name] = &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644}
	}
	packed, err := pack(headers, a.files, at)
	if err != nil {
		return err
	}
	_, err = w.Write(packed)

	return err
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)

	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }
