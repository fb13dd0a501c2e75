package console_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/console"
)

var server *cluster.Up

// TestMain starts the control plane that pages share where a reader would: in the root of the
// repository, with bin in the PATH.
func TestMain(m *testing.M) {
	err := errors.Join(os.Chdir(cluster.Root()), os.Setenv("PATH", filepath.Join(cluster.Root(), "bin")+":"+os.Getenv("PATH")))
	if err != nil {
		panic(err)
	}
	os.Exit(cluster.Main(m, &server, "--nodes=4", "--node-gpus=8"))
}

const (
	// maxNotRun is how many blocks of all pages may have a reason not to be executed.
	maxNotRun = 25
	// repeatFor is how long a command that only reads is repeated.
	repeatFor = 30 * time.Second
	// planes is how many pages with a control plane of their own run at a time.
	planes = 2
)

var (
	// slow matches what a busy machine adds to the output of arbor up.
	slow     = regexp.MustCompile(`(?m)^  still waiting for .*\n`)
	makeUp   = regexp.MustCompile(`^make up(?: ARGS="(.*)")?$`)
	readOnly = regexp.MustCompile(`^(kubectl (get|describe|explain|events|auth|api-resources|wait|logs|top)|arbor (groups|pg|pools|fields (show|plan|check)|compositions|audit|doctor|lint|version|explain)|bin/arbor)\b|^arbor delivery($| [a-z]+$| (show|history|diff|state|rollout) )`)
	// namespaced matches what names the namespace default in a command or a manifest.
	namespaced = regexp.MustCompile(`(\bnamespace(?:: |=| )|-n |serviceaccount[:=])default\b`)
)

// pages returns the pages of the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "examples/README.md", "charts/arbor/README.md"}
	root := cluster.Root()
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			relative, _ := filepath.Rel(root, path)
			found = append(found, relative)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// pending returns the pages whose blocks are not executed yet. The list may only become shorter.
func pending(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("test", "console", "pending.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}

	return strings.Fields(string(text))
}

// TestBlocks checks the form of all blocks of all pages.
func TestBlocks(t *testing.T) {
	t.Parallel()
	all, notRun := pages(t), 0
	for _, page := range all {
		blocks, err := console.Read(filepath.Join(cluster.Root(), page))
		if err != nil {
			t.Error(err)
		}
		for _, b := range blocks {
			if b.NoRun != "" {
				notRun++
			}
		}
	}
	if notRun > maxNotRun {
		t.Errorf("%d blocks are not executed, of at most %d", notRun, maxNotRun)
	}
	for _, page := range pending(t) {
		if !slices.Contains(all, page) {
			t.Errorf("pending.txt has %s, which does not exist", page)
		}
	}
}

// TestPages executes the blocks of the pages.
func TestPages(t *testing.T) {
	t.Parallel()
	waiting := pending(t)
	own := make(chan struct{}, planes)
	for _, page := range pages(t) {
		blocks, err := console.Read(filepath.Join(cluster.Root(), page))
		if err != nil {
			t.Fatal(err)
		}
		if len(blocks) == 0 || slices.Contains(waiting, page) {
			continue
		}
		t.Run(strings.TrimSuffix(page, ".md"), func(t *testing.T) {
			t.Parallel()
			r := &reader{T: t, page: page, own: own}
			r.prepare()
			for _, b := range blocks {
				if b.NoRun == "" {
					r.read(&b)
				}
			}
		})
	}
}

// A reader follows a page literally.
type reader struct {
	*testing.T

	page      string
	own       chan struct{}
	dir, home string
	namespace string // that output shows as default
	sh        *shell
}

// prepare gives the reader a folder that looks like the repository, a home, kubectl, and a
// namespace.
func (r *reader) prepare() {
	r.Helper()
	r.dir, r.home = filepath.Join(r.TempDir(), "arbor"), filepath.Join(r.TempDir(), "home")
	tools := filepath.Join(r.home, "tools")
	for _, dir := range []string{r.dir, tools, filepath.Join(r.dir, ".arbor")} {
		r.must(os.MkdirAll(dir, 0o700))
	}
	// Its name is as long as "default", so that columns are as wide as for a reader.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "d-"}}
	r.must(server.Client(r, nil).Create(r.Context(), namespace))
	r.namespace = namespace.Name
	r.link()
	r.must(os.WriteFile(filepath.Join(tools, "kubectl"), []byte("#!/bin/sh\nexec "+filepath.Join(cluster.Root(), "bin", "arbor")+" kubectl \"$@\"\n"), 0o700))
	config, err := clientcmd.LoadFromFile(server.Kubeconfig)
	r.must(err)
	config.Contexts[config.CurrentContext].Namespace = r.namespace
	kubeconfig := filepath.Join(r.dir, ".arbor", "kubeconfig")
	r.must(clientcmd.WriteToFile(*config, kubeconfig))
	r.sh = newShell(r.T, r.dir, "HOME="+r.home, "XDG_STATE_HOME="+filepath.Join(r.home, ".local", "state"), "KUBECONFIG="+kubeconfig,
		"PATH="+filepath.Join(cluster.Root(), "bin")+":"+tools+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "COLUMNS=80")
}

// link makes a folder that looks like the root of the repository.
func (r *reader) link() {
	r.Helper()
	entries, err := os.ReadDir(cluster.Root())
	r.must(err)
	for _, e := range entries {
		if !slices.Contains([]string{".arbor", ".git", "examples"}, e.Name()) {
			r.must(os.Symlink(filepath.Join(cluster.Root(), e.Name()), filepath.Join(r.dir, e.Name())))
		}
	}
	r.examples()
}

// examples copies the examples, into the namespace of the page.
func (r *reader) examples() {
	r.Helper()
	from := os.DirFS(filepath.Join(cluster.Root(), "examples"))
	r.must(fs.WalkDir(from, ".", func(path string, e fs.DirEntry, err error) error {
		to := filepath.Join(r.dir, "examples", path)
		if err != nil || e.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o700))
		}
		text, err := fs.ReadFile(from, path)

		return errors.Join(err, os.WriteFile(to, []byte(r.localized(string(text))), 0o600))
	}))
}

// localized returns a text with the namespace of the page in place of default.
func (r *reader) localized(text string) string {
	return namespaced.ReplaceAllString(text, "${1}"+r.namespace)
}

func (r *reader) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *reader) read(b *console.Block) {
	r.Helper()
	for _, c := range b.Commands {
		if m := makeUp.FindStringSubmatch(c.Text); m != nil {
			r.up(&c, strings.Fields(m[1]))
		} else {
			r.execute(&c)
		}
	}
}

// up starts a control plane for this page.
func (r *reader) up(c *console.Command, args []string) {
	r.Helper()
	r.own <- struct{}{}
	dir := filepath.Join(r.dir, ".arbor")
	up, err := cluster.Start(dir, append([]string{"--unsafe-no-fsync"}, args...)...)
	r.must(err)
	r.Cleanup(func() {
		up.Stop()
		<-r.own
	})
	r.namespace = metav1.NamespaceDefault
	r.examples()
	if len(c.Output) > 0 {
		r.check(c, slow.ReplaceAllString(up.Output(), ""))
	}
}

// execute runs a command, again and again if it only reads, until its output is right.
func (r *reader) execute(c *console.Command) {
	r.Helper()
	for deadline := time.Now().Add(repeatFor); ; {
		output, code, err := r.sh.run(r.localized(c.Text))
		if err != nil {
			r.Fatalf("%s:%d: %s: %v", r.page, c.Line, c.Text, err)
		}
		output = r.neutral(output)
		switch {
		case len(c.Output) > 0:
			err = console.Match(c.Output, output)
		case code != 0:
			err = fmt.Errorf("it ends with exit code %d and prints\n%s", code, output)
		}
		if err == nil {
			return
		}
		if !readOnly.MatchString(c.Text) || time.Now().After(deadline) || r.Failed() {
			r.Errorf("%s:%d: $ %s\n%v", r.page, c.Line, c.Text, err)

			return
		}
		<-time.After(200 * time.Millisecond)
	}
}

func (r *reader) check(c *console.Command, output string) {
	r.Helper()
	if err := console.Match(c.Output, r.neutral(output)); err != nil {
		r.Errorf("%s:%d: $ %s\n%v", r.page, c.Line, c.Text, err)
	}
}

// neutral returns output with the names that a reader would see.
func (r *reader) neutral(output string) string {
	output = strings.ReplaceAll(output, r.namespace, metav1.NamespaceDefault)

	return strings.ReplaceAll(strings.ReplaceAll(output, r.home, "/home/you"), r.dir, "/home/you/arbor")
}
