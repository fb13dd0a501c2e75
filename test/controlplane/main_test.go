// Package controlplane_test tests `arbor up` as a user runs it: started, stopped, killed, started
// again, and with invalid flags.
package controlplane_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/test/cluster"
)

func start(t *testing.T, dir string, args ...string) *cluster.Up {
	t.Helper()
	up, err := cluster.Start(dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		up.Stop()
		if t.Failed() {
			up.DumpLogs()
		}
	})

	return up
}

func newClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	must(t, err)

	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// One run, checked from all sides: what a newcomer gets.
func TestUp(t *testing.T) {
	dir := t.TempDir()
	up := start(t, dir, "--nodes=2", "--unsafe-no-fsync")
	c := newClient(t, up.Config)

	t.Run("Screen", func(t *testing.T) {
		for _, want := range []string{"is up after", "export KUBECONFIG=" + up.Kubeconfig, "arbor-scheduler", "arbor-manager", "kubectl apply", "arbor groups"} {
			cluster.Eventually(t, "the screen reports "+want, func() error {
				if !strings.Contains(up.Output(), want) {
					return errors.New(up.Output())
				}

				return nil
			})
		}
	})
	t.Run("Kubeconfig", func(t *testing.T) {
		info, err := os.Stat(up.Kubeconfig)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("other users may read the administrator's key: mode %o", info.Mode().Perm())
		}
	})
	t.Run("Version", func(t *testing.T) {
		v, err := c.Discovery().ServerVersion()
		must(t, err)
		if !strings.HasPrefix(v.GitVersion, "v1.36.") || v.Major != "1" || v.Minor != "36" {
			t.Errorf("version is %+v", v)
		}
	})
	t.Run("DeploymentRuns", func(t *testing.T) { deploymentRuns(t, c) })
	t.Run("RBAC", func(t *testing.T) {
		nobody := rest.AnonymousClientConfig(up.Config)
		_, err := newClient(t, nobody).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("anonymous users may read Secrets: %v", err)
		}
	})
	t.Run("LoopbackOnly", func(t *testing.T) {
		pids := children(t, dir)
		if len(pids) != 5 {
			t.Errorf("%d children run, want 5", len(pids))
		}
		for _, address := range listening(t, append(pids, up.PID())) {
			if !address.IsLoopback() {
				t.Errorf("something listens on %s", address)
			}
		}
	})
	t.Run("SecondUp", func(t *testing.T) {
		out, code := fail(t, "up", "--dir="+dir)
		if want := fmt.Sprintf("is in use by process %d", up.PID()); code != 1 || !strings.Contains(out, want) {
			t.Errorf("code %d, %s; want %q", code, out, want)
		}
	})
	t.Run("ChildIsRestarted", func(t *testing.T) {
		for _, name := range []string{"arbor-scheduler", "kube-apiserver", "arbor-manager"} {
			old := killChild(t, dir, name)
			cluster.Eventually(t, name+" runs again", func() error {
				if pid := child(t, dir, name); pid == 0 || pid == old {
					return errors.New("not yet")
				}

				return nil
			})
		}
		awaitDefault(t, c)
		deploymentRuns(t, c)
	})
	t.Run("Stop", func(t *testing.T) {
		// A watch that no client ends must not delay the end.
		w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
		must(t, err)
		defer w.Stop()
		// Its children have twice 4 s. The rest is for a machine that is busy.
		if took := up.Stop(); took > 20*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		if code := up.ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if left := children(t, dir); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
		if _, err := os.Stat(up.Kubeconfig); !os.IsNotExist(err) {
			t.Errorf("the kubeconfig is still there: %v", err)
		}
	})
	t.Run("BareAfterwards", func(t *testing.T) {
		bare := start(t, dir, "--bare", "--nodes=0", "--unsafe-no-fsync")
		cluster.Eventually(t, "the screen reports that webhooks are still registered", func() error {
			if !strings.Contains(bare.Output(), "kubectl delete validatingwebhookconfiguration arbor") {
				return errors.New(bare.Output())
			}

			return nil
		})
	})
}

// kill -9 of everything at any moment loses nothing that was stored.
func TestKillEverything(t *testing.T) {
	dir := t.TempDir()
	stored := 0
	for round := range 3 {
		up := start(t, dir, "--bare", "--nodes=0")
		c := newClient(t, up.Config)
		awaitDefault(t, c)
		list, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: "test"})
		must(t, err)
		if len(list.Items) != stored {
			t.Fatalf("round %d: %d objects are there, %d were stored", round, len(list.Items), stored)
		}
		for i := range 50 {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m-%d-%d", round, i), Labels: map[string]string{"test": ""}}}
			_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{})
			must(t, err)
			stored++
		}
		pids := children(t, dir)
		if round == 1 {
			// Only the parent: its children must notice, and the next start
			// must wait for them.
			pids = nil
		}
		for _, pid := range append(pids, up.PID()) {
			// One may have ended by itself when the rest did.
			if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
				must(t, err)
			}
		}
		<-up.Done()
	}
}

// A child that cannot be started again takes everything down, with its words.
func TestChildThatCannotRestart(t *testing.T) {
	dir := t.TempDir()
	up := start(t, dir, "--bare", "--nodes=0", "--unsafe-no-fsync")
	must(t, os.WriteFile(filepath.Join(dir, "pki", "server.key"), []byte("damaged"), 0o600))
	killChild(t, dir, "kube-scheduler")
	if code := up.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if out := up.Output(); !strings.Contains(out, "Error: kube-scheduler died") || !strings.Contains(out, "failed to find any PEM data") {
		t.Errorf("it does not say why:\n%s", out)
	}
	if left := children(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)

	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	theirs := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(theirs, []byte("apiVersion: v1\nkind: Config\ncontexts:\n- {name: prod, context: {cluster: prod, user: me}}\n"), 0o600))
	damaged := t.TempDir()
	database := filepath.Join(damaged, "etcd", "member", "snap", "db")
	must(t, os.MkdirAll(filepath.Dir(database), 0o700))
	must(t, os.WriteFile(database, []byte(strings.Repeat("rubbish ", 10000)), 0o600))
	// Two directories, since one that is trusted once stays trusted.
	keyless, foreign := t.TempDir(), t.TempDir()
	for _, dir := range []string{keyless, foreign} {
		must(t, os.MkdirAll(filepath.Join(dir, "pki"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "pki", "ca.crt"), []byte("rubbish"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "pki", "ca.key"), []byte("rubbish"), 0o600))
	}

	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"PortTaken":          {"A port that is in use is named.", []string{"--port=" + port}, "Error: port " + port + " cannot be used"},
		"PortOutOfRange":     {"Ports end at 65535.", []string{"--port=70000"}, "Error: --port 70000: it must be between"},
		"DirNotWritable":     {"A directory that cannot be made is named.", []string{"--dir=" + filepath.Join(file, "x")}, "Error: cannot use directory " + file},
		"DirOfOthers":        {"What a repository or an archive brings is not run.", []string{"--dir=" + foreign}, "Error: cannot use directory " + foreign + ": it was created by an earlier release, or not by arbor up for you: the Synthesizers in it would run their commands as you; if you trust it, start once with --trust-dir, or choose another with --dir"},
		"DamagedData":        {"Data that cannot be read is left as it is.", []string{"--trust-dir", "--dir=" + damaged}, "Error: kube-apiserver cannot start: cannot open etcd's data in " + filepath.Join(damaged, "etcd") + ": it is damaged"},
		"DamagedKeys":        {"Keys that cannot be read are not replaced behind one's back.", []string{"--trust-dir", "--dir=" + keyless}, "Error: cannot use " + filepath.Join(keyless, "pki", "ca.crt")},
		"UnknownController":  {"A typo is named, with what is known.", []string{"--controllers=podgroup"}, `Error: --controllers: unknown controller "podgroup"; known are podgroups`},
		"KubeconfigOfOthers": {"The kubeconfig of a user is never overwritten.", []string{"--kubeconfig=" + theirs}, "Error: kubeconfig " + theirs + " exists and holds other clusters"},
		"NoKubeconfigDir":    {"A kubeconfig that cannot be written is named before anything starts.", []string{"--kubeconfig=" + filepath.Join(file, "x")}, "Error: cannot write kubeconfig " + file},
		"PublicMetrics":      {"Plain metrics stay on this machine.", []string{"--metrics-bind-address=0.0.0.0:8080"}, "Error: --metrics-bind-address"},
		"Nodes":              {"There is no negative number of nodes.", []string{"--nodes=-1"}, "Error: --nodes -1: it must be between"},
		"Argument":           {"There are no arguments.", []string{"now"}, `Error: unknown command "now" for "arbor up"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out, code := fail(t, append([]string{"up", "--dir=" + dir}, tc.args...)...)
			if code != 1 {
				t.Errorf("%s\nexit code %d, want 1", tc.reason, code)
			}
			if !strings.Contains(out, tc.want) || strings.Count(out, "Error: ") != 1 || !strings.HasPrefix(lastLine(out), "Error: ") {
				t.Errorf("%s\ngot  %s\nwant one line with %s", tc.reason, out, tc.want)
			}
			if left := children(t, dir); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
		})
	}
	if data, err := os.ReadFile(theirs); err != nil || !strings.Contains(string(data), "prod") {
		t.Errorf("the kubeconfig of a user was changed: %s, %v", data, err)
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")

	return lines[len(lines)-1]
}

// fail runs arbor and returns its output and its exit code.
func fail(t *testing.T, args ...string) (string, int) {
	t.Helper()
	binary, err := cluster.Binary("arbor", "ARBOR")
	must(t, err)
	p, err := cluster.StartProcess(binary, args...)
	must(t, err)
	code := p.ExitCode()

	return p.Output(), code
}

// killChild kills a component, and returns which process that was. It may be about to
// be started again, if it did not bear that another was killed.
func killChild(t *testing.T, dir, name string) int {
	t.Helper()
	pid := 0
	cluster.Eventually(t, name+" is killed", func() error {
		if pid = child(t, dir, name); pid == 0 {
			return errors.New("it does not run")
		}

		return syscall.Kill(pid, syscall.SIGKILL)
	})

	return pid
}

// awaitDefault waits until the API server answers and has its namespaces.
func awaitDefault(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	cluster.Eventually(t, "there is the namespace default", func() error {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})

		return err
	})
}

func deploymentRuns(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	replicas := int32(3)
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	// An API server that has just started rejects writes for a while.
	cluster.Eventually(t, "the Deployment is made", func() error {
		made, err := c.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{})
		if err == nil {
			d = made
		}

		return err
	})
	cluster.Eventually(t, "the Deployment is available", func() error {
		got, err := c.AppsV1().Deployments("default").Get(t.Context(), d.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got.Status.AvailableReplicas != replicas {
			return fmt.Errorf("%d of %d", got.Status.AvailableReplicas, replicas)
		}

		return nil
	})
	must(t, c.AppsV1().Deployments("default").Delete(t.Context(), d.Name, metav1.DeleteOptions{}))
}
