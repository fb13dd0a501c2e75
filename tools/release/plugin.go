package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/arbor-control/arbor/tools/release/licence"
	"github.com/arbor-control/arbor/tools/release/product"
)

// krewManifest is the file that krew knows plugins by. Its name is that of the plugin.
const krewManifest = "arbor.yaml"

//go:embed plugins/arbor.yaml
var krewTemplate string

// A download is the plugin for one platform, as krew finds it.
type download struct {
	OS, Arch, URI, SHA256, Bin string
}

// makePlugin builds the plugin of kubectl for each of its platforms, in an archive each, and writes
// the krew manifest if it is known where the archives will be. It returns what the programs are made of.
func (o options) makePlugin(ctx context.Context) ([][]licence.Module, error) {
	var all [][]licence.Module
	var downloads []download
	for _, p := range product.PluginPlatforms {
		modules, err := o.linked(ctx, p, []string{product.Plugin})
		if err != nil {
			return nil, err
		}
		d, err := o.packPlugin(ctx, p, modules)
		if err != nil {
			return nil, err
		}
		all, downloads = append(all, modules), append(downloads, d)
	}
	if o.baseURL == "" {
		fmt.Fprintf(o.progress, "%s, the krew manifest, is not written: name where the files will be with BASE_URL=URL\n", krewManifest)

		return all, nil
	}

	return all, o.writeKrew(downloads)
}

// packPlugin builds the plugin for one platform, and writes the archive and the SBOM.
func (o options) packPlugin(ctx context.Context, p product.Platform, modules []licence.Module) (download, error) {
	dir, err := os.MkdirTemp("", "arbor-plugin-")
	if err != nil {
		return download{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d := download{OS: p.OS, Arch: p.Arch, Bin: product.Plugin}
	if p.OS == "windows" {
		d.Bin += ".exe"
	}
	program := filepath.Join(dir, d.Bin)
	if err := o.build(ctx, p, "./cmd/"+product.Plugin, program); err != nil {
		return download{}, err
	}
	archive, err := o.pack(program, filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return download{}, err
	}
	name := fmt.Sprintf("%s_%s_%s", product.Plugin, p.OS, p.Arch)
	d.URI = strings.TrimSuffix(o.baseURL, "/") + "/" + name + ".tar.gz"
	d.SHA256 = fmt.Sprintf("%x", sha256.Sum256(archive))
	released := filepath.Join(o.out, name)
	if err := o.bill(product.Plugin, program, released, modules); err != nil {
		return download{}, err
	}

	return d, os.WriteFile(released+".tar.gz", archive, 0o644) //nolint:gosec // what is released may be read
}

// pack returns files as a compressed tar, without directories, times and owners.
func (o options) pack(files ...string) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if strings.HasPrefix(filepath.Base(name), product.Plugin) {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{Name: filepath.Base(name), Mode: mode, Size: int64(len(data)), ModTime: o.created, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err = z.Close()

	return b.Bytes(), err
}

// writeKrew fills the manifest.
func (o options) writeKrew(downloads []download) error {
	parsed, err := template.New(krewManifest).Parse(krewTemplate)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, map[string]any{"Version": o.version, "Homepage": "https://" + product.Module, "Downloads": downloads}); err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(o.out, krewManifest), b.Bytes(), 0o644) //nolint:gosec // what is released may be read
}
