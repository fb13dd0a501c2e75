package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/tools/release/product"
)

// tiny is a module with commands of the product's names, so that a test need not
// build the real ones.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26.0\n", "LICENSE": "do as you like\n"}
	const program = "package main\n\nimport \"os\"\n\nvar release string\n\nfunc main() { os.Stdout.WriteString(\"tiny \" + release + \"\\n\") }\n"
	for _, name := range append([]string{product.Plugin}, product.InRelease...) {
		all["cmd/"+name+"/main.go"] = program
	}
	for _, i := range product.Images {
		if i.Module != "" {
			all[i.Module+"/go.mod"], all[i.Module+"/main.go"] = "module example.com/tiny/"+i.Module+"\n\ngo 1.26.0\n", program

			continue
		}
		for _, name := range i.Commands {
			all["cmd/"+name+"/main.go"] = program
		}
	}
	for name, content := range all {
		at := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(content), 0o600))
	}

	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func produce(t *testing.T, what, root, out string, flags ...string) {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	must(t, run(t.Context(), slices.Concat(flags, []string{"-root", root, "-out", out, "-version", "v1.2.3", "-revision", "abc", "-ldflags", "-X main.release=v1.2.3", what}), io.Discard))
}

// untar reads an archive into memory.
func untar(t *testing.T, data []byte) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		files[h.Name], headers[h.Name] = content, h
	}
}

// A layout is read as others read it: by its names, and every blob by its digest.
type layout map[string][]byte

func (l layout) read(t *testing.T, name string) map[string]any {
	t.Helper()
	var v map[string]any
	must(t, json.Unmarshal(l[name], &v))

	return v
}

func (l layout) blob(t *testing.T, descriptor any) []byte {
	t.Helper()
	d := descriptor.(map[string]any)
	data, ok := l["blobs/"+strings.ReplaceAll(d["digest"].(string), ":", "/")]
	if !ok {
		t.Fatalf("there is no %s", d["digest"])
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); got != d["digest"] || float64(len(data)) != d["size"] {
		t.Errorf("%s of %v bytes is really %s of %d", d["digest"], d["size"], got, len(data))
	}

	return data
}

func (l layout) document(t *testing.T, descriptor any) map[string]any {
	t.Helper()
	var v map[string]any
	must(t, json.Unmarshal(l.blob(t, descriptor), &v))

	return v
}

// Images are made of programs that are built already, if they are for the platform.
func TestImagesOfPrograms(t *testing.T) {
	root, programs, out := tiny(t), t.TempDir(), t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", root, "-o", programs+"/", "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cases := map[string]struct{ reason, platform, image, want string }{
		"Packed":   {"It is what is asked for.", "linux/arm64", "arbor-scheduler", ""},
		"Platform": {"A program of another platform would not run.", "linux/amd64", "arbor-scheduler", "it is for EM_AARCH64"},
		"Missing":  {"It is not built.", "linux/arm64", "arbor-synthesizer-helm", "no such file"},
		"Unknown":  {"There is no such image.", "linux/arm64", "arbor", `"arbor" is not an image`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), []string{"-root", root, "-out", out, "-programs", programs, "-platforms", tc.platform, "images", tc.image}, io.Discard)
			if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ngot error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	made, err := os.ReadDir(out)
	must(t, err)
	if len(made) != 1 || made[0].Name() != "arbor-scheduler.oci.tar" {
		t.Errorf("made %v, want the image of arbor-scheduler only", made)
	}
	data, err := os.ReadFile(filepath.Join(out, "arbor-scheduler.oci.tar"))
	must(t, err)
	want, err := os.ReadFile(filepath.Join(programs, "arbor-scheduler"))
	must(t, err)
	files, _ := untar(t, data)
	found := false
	for _, blob := range files {
		if z, err := gzip.NewReader(bytes.NewReader(blob)); err == nil {
			plain, err := io.ReadAll(z)
			must(t, err)
			layer, _ := untar(t, plain)
			found = found || bytes.Equal(layer["arbor-scheduler"], want)
		}
	}
	if !found {
		t.Error("the program in the image is not the one that was built")
	}
}

func TestImages(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	produce(t, "images", tiny(t), one)
	produce(t, "images", tiny(t), two) // elsewhere, later: the same source is the same image
	for _, i := range product.Images {
		t.Run(i.Name, func(t *testing.T) {
			a, err := os.ReadFile(filepath.Join(one, i.Name+".oci.tar"))
			must(t, err)
			b, err := os.ReadFile(filepath.Join(two, i.Name+".oci.tar"))
			must(t, err)
			if !bytes.Equal(a, b) {
				t.Error("the same source has become two images")
			}
			checkImage(t, i, a)
		})
	}
}

func checkImage(t *testing.T, i product.Image, archive []byte) {
	t.Helper()
	files, _ := untar(t, archive)
	l := layout(files)
	if got := l.read(t, "oci-layout")["imageLayoutVersion"]; got != "1.0.0" {
		t.Errorf("the layout has version %v", got)
	}
	top := l.read(t, "index.json")["manifests"].([]any)[0].(map[string]any)
	want := map[string]any{"io.containerd.image.name": "localhost/" + i.Name + ":v1.2.3", "org.opencontainers.image.ref.name": "v1.2.3"}
	if diff := cmp.Diff(want, top["annotations"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var platforms []string
	for _, m := range l.document(t, top)["manifests"].([]any) {
		p := m.(map[string]any)["platform"].(map[string]any)
		platforms = append(platforms, fmt.Sprintf("%v/%v", p["os"], p["architecture"]))
		checkVariant(t, i, l, m, p)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// Docker without a store for images reads another list of the same blobs.
	var saved []struct {
		Config           string
		RepoTags, Layers []string
	}
	must(t, json.Unmarshal(files["manifest.json"], &saved))
	if len(saved) != 1 || files[saved[0].Config] == nil || files[saved[0].Layers[0]] == nil || saved[0].RepoTags[0] != "localhost/"+i.Name+":v1.2.3" {
		t.Errorf("got %+v, want the blobs of the first platform", saved)
	}
}

func checkVariant(t *testing.T, i product.Image, l layout, descriptor any, platform map[string]any) {
	t.Helper()
	m := l.document(t, descriptor)
	c := l.document(t, m["config"])
	if c["os"] != platform["os"] || c["architecture"] != platform["architecture"] {
		t.Errorf("the configuration is for %v/%v, the index says %v", c["os"], c["architecture"], platform)
	}
	runs := c["config"].(map[string]any)
	labels := runs["Labels"].(map[string]any)
	if runs["User"] != "65532:65532" || fmt.Sprint(runs["Entrypoint"]) != "[/"+i.Name+"]" || labels["org.opencontainers.image.title"] != i.Name || labels["org.opencontainers.image.version"] != "v1.2.3" ||
		labels["org.opencontainers.image.revision"] != "abc" || labels["org.opencontainers.image.created"] != "2023-11-14T22:13:20Z" {
		t.Errorf("it runs as %v", runs)
	}
	layers := m["layers"].([]any)
	z, err := gzip.NewReader(bytes.NewReader(l.blob(t, layers[0])))
	must(t, err)
	plain, err := io.ReadAll(z)
	must(t, err)
	if got := fmt.Sprintf("[sha256:%x]", sha256.Sum256(plain)); len(layers) != 1 || got != fmt.Sprint(c["rootfs"].(map[string]any)["diff_ids"]) {
		t.Errorf("the layer is %s, the configuration says %v", got, c["rootfs"])
	}

	files, headers := untar(t, plain)
	modes := map[string]string{}
	for name, h := range headers {
		modes[name] = fmt.Sprintf("%o %d:%d %d", h.Mode, h.Uid, h.Gid, h.ModTime.Unix())
	}
	want := map[string]string{"LICENSE": "444 0:0 1700000000", "THIRD_PARTY_NOTICES": "444 0:0 1700000000"}
	for _, name := range i.Commands {
		want[name] = "555 0:0 1700000000"
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(string(files["THIRD_PARTY_NOTICES"]), "Copyright 2009 The Go Authors") {
		t.Error("the licence of Go's own library does not go along")
	}
	checkProgram(t, files[i.Name], platform["architecture"].(string))
}

// checkProgram sees whether a program of the layer is static, and runs it if this
// machine can.
func checkProgram(t *testing.T, data []byte, arch string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(name, data, 0o700))
	if err := checkStatic(name); err != nil {
		t.Error(err)
	}
	info, err := buildinfo.ReadFile(name)
	must(t, err)
	if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "GOARCH" && s.Value == arch }) {
		t.Errorf("it is not for %s: %v", arch, info.Settings)
	}
	if arch != runtime.GOARCH {
		return
	}
	out, err := exec.CommandContext(t.Context(), name).Output()
	if err != nil || string(out) != "tiny v1.2.3\n" {
		t.Errorf("it says %q, %v", out, err)
	}
}

func TestRelease(t *testing.T) {
	root, dir := tiny(t), filepath.Join(t.TempDir(), "dist")
	key, file := newKey(t, "PRIVATE KEY")
	produce(t, "release", root, dir, "-sign-key", file, "-base-url", "https://example.com/v1.2.3/")
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"SHA256SUMS", "SHA256SUMS.sig", "THIRD_PARTY_NOTICES", krewManifest}
	for _, p := range product.PluginPlatforms {
		name := "kubectl-arbor_" + p.OS + "_" + p.Arch
		want = append(want, name+".tar.gz", name+".cdx.json")
	}
	for _, i := range product.Images {
		want = append(want, i.Name+".oci.tar")
	}
	for _, name := range product.InRelease {
		for _, arch := range []string{"amd64", "arm64"} {
			want = append(want, name+"_linux_"+arch, name+"_linux_"+arch+".cdx.json")
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", checksums)
	check.Dir = dir
	out, err := check.CombinedOutput()
	if err != nil || strings.Count(string(out), ": OK\n") != len(want)-2 {
		t.Errorf("the checksums: %v\n%s", err, out)
	}
	checkSignature(t, dir, key)
	checkPlugin(t, dir)
	if err := run(t.Context(), []string{"-root", root, "-out", dir, "release"}, io.Discard); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a release was written over another one: %v", err)
	}
}

// checkPlugin reads the krew manifest as krew does: each archive has the checksum and the program
// that it names.
func checkPlugin(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, krewManifest))
	must(t, err)
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	must(t, yaml.Unmarshal(data, &plugin))
	if plugin.Spec.Version != "v1.2.3" || len(plugin.Spec.Platforms) != len(product.PluginPlatforms) {
		t.Errorf("got %+v", plugin)
	}
	for _, p := range plugin.Spec.Platforms {
		name, ok := strings.CutPrefix(p.URI, "https://example.com/v1.2.3/")
		archive, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if sum := fmt.Sprintf("%x", sha256.Sum256(archive)); !ok || sum != p.SHA256 {
			t.Errorf("%s has the checksum %s, and %s is written", p.URI, sum, p.SHA256)
		}
		z, err := gzip.NewReader(bytes.NewReader(archive))
		must(t, err)
		plain, err := io.ReadAll(z)
		must(t, err)
		files, headers := untar(t, plain)
		if len(files) != 2 || files["LICENSE"] == nil || headers[p.Bin] == nil || headers[p.Bin].Mode != 0o755 {
			t.Fatalf("%s has no %s: %v", name, p.Bin, headers)
		}
		at := filepath.Join(t.TempDir(), "program")
		must(t, os.WriteFile(at, files[p.Bin], 0o600))
		info, err := buildinfo.ReadFile(at)
		must(t, err)
		for key, label := range map[string]string{"GOOS": "os", "GOARCH": "arch"} {
			if !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
				return s.Key == key && s.Value == p.Selector.MatchLabels[label]
			}) {
				t.Errorf("%s is not for %v: %v", name, p.Selector.MatchLabels, info.Settings)
			}
		}
	}
}

func TestBadArguments(t *testing.T) {
	cases := map[string]struct {
		reason string
		epoch  string
		args   []string
		want   string
	}{
		"NoTime":   {"Without a time no two releases are the same.", "", []string{"-out", "x", "images"}, `SOURCE_DATE_EPOCH "": it must be the time of the commit`},
		"NoOut":    {"It must be known where to write.", "1", []string{"images"}, "--out is empty: say where to write the images"},
		"Unknown":  {"A typo makes nothing.", "1", []string{"-out", "x", "imgaes"}, `"imgaes" is nothing that can be made; known are images and release`},
		"Platform": {"What is not built for is named.", "1", []string{"-out", "x", "-platforms", "linux/amd64,plan9/386", "images"}, `--platforms "linux/amd64,plan9/386": it must be some of [linux/amd64 linux/arm64]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", tc.epoch)
			if err := run(t.Context(), tc.args, io.Discard); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

// What links the C library is not shipped.
func TestStatic(t *testing.T) {
	if err := checkStatic("/bin/sh"); err == nil || !strings.Contains(err.Error(), "it is not static") {
		t.Errorf("a shell of this system: %v", err)
	}
}

// One platform is enough for some.
func TestPlatforms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	must(t, run(t.Context(), []string{"-root", tiny(t), "-out", dir, "-platforms", "linux/arm64", "images"}, io.Discard))
	data, err := os.ReadFile(filepath.Join(dir, "arbor-scheduler.oci.tar"))
	must(t, err)
	files, _ := untar(t, data)
	l := layout(files)
	all := l.document(t, l.read(t, "index.json")["manifests"].([]any)[0])["manifests"].([]any)
	if len(all) != 1 || all[0].(map[string]any)["platform"].(map[string]any)["architecture"] != "arm64" {
		t.Errorf("it is for %v", all)
	}
}
