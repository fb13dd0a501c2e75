package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// required is a line of a go.mod with a module and its version.
var required = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// The kubelet of test/node is that of the control plane, and no package is compiled a second
// time for it.
func TestKubeletVersions(t *testing.T) {
	own, kubelet := versions(t, "go.mod"), versions(t, "tools/node/kubelet/go.mod")
	if kubelet["k8s.io/kubernetes"] == "" {
		t.Fatal("tools/node/kubelet/go.mod does not name k8s.io/kubernetes")
	}
	for module, version := range kubelet {
		if want := own[module]; want != "" && want != version {
			t.Errorf("tools/node/kubelet/go.mod has %s %s, and go.mod has %s: run go get %s@%s there", module, version, want, module, want)
		}
	}
}

func versions(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range required.FindAllStringSubmatch(string(data), -1) {
		all[m[1]] = m[2]
	}

	return all
}

// toolchain is the line of a go.mod that names the Go to build with.
var toolchain = regexp.MustCompile(`(?m)^toolchain (go\S+)$`)

// Everything is built with one version of Go: the same commit is then the same release.
func TestToolchains(t *testing.T) {
	var all []string
	for _, pattern := range []string{"go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	want := ""
	for _, name := range all {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := toolchain.FindStringSubmatch(string(data))
		switch {
		case m == nil:
			t.Errorf("%s has no toolchain line", name)
		case want == "":
			want = m[1]
		case m[1] != want:
			t.Errorf("%s has toolchain %s, and go.mod has %s", name, m[1], want)
		}
	}
	if len(all) < 8 {
		t.Errorf("only %d modules were found: %v", len(all), all)
	}
}
