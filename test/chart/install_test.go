package chart_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/pki"
	"github.com/arbor-control/arbor/test/cluster"
)

// Where the strictest standard for pods is enforced, the manager's and the scheduler's
// are made, and on two nodes.
func TestRestricted(t *testing.T) {
	c := server.Client(t, nil)
	foreign(t, c)
	for name, tc := range map[string]struct {
		component string
		values    []string
	}{
		"own":         {"manager", nil},
		"certmanager": {"manager", []string{"webhooks.certificates=cert-manager"}},
		"remote":      {"manager", only("delivery", "delivery.remoteKubeconfigSecret=target")},
		"scheduler":   {"scheduler", []string{"scheduler.enabled=true"}},
		"configured":  {"scheduler", []string{"scheduler.enabled=true", "scheduler.config=kind: KubeSchedulerConfiguration"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := install(t, c, "arbor-"+name, tc.values...)
			cluster.Eventually(t, "two pods are there", func() error {
				pods := &corev1.PodList{}
				must(t, c.List(t.Context(), pods, client.InNamespace(r.name), client.MatchingLabels{"app.kubernetes.io/component": tc.component}))
				nodes := map[string]bool{}
				for _, p := range pods.Items {
					nodes[p.Spec.NodeName] = p.Spec.NodeName != ""
				}
				if len(pods.Items) != 2 || len(nodes) != 2 {
					d := &appsv1.Deployment{}
					must(t, c.Get(t.Context(), client.ObjectKey{Namespace: r.name, Name: r.name + "-" + tc.component}, d))

					return fmt.Errorf("there are %d pods on nodes %v: %+v", len(pods.Items), nodes, d.Status.Conditions)
				}

				return nil
			})
		})
	}
	// The standard is enforced here, or the above proves nothing.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "arbor-own", Name: "root"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if err := c.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a pod that may be root was answered with %v", err)
	}
}

// A release is changed with data in place, and goes without leaving anything that
// would reject objects; the data stays.
func TestUpgradeAndUninstall(t *testing.T) {
	c := server.Client(t, nil)
	purge(t, c)
	r := install(t, c, "arbor-upgraded", only("podgroups")...)
	s := &stage{Client: c, release: r, namespace: cluster.Namespace(t, c)}
	m := r.start(t)
	group := &v2alpha2.PodGroup{ObjectMeta: s.meta("kept"), Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a"}}}}
	s.create(t, group)

	helm(t, slices.Concat([]string{"upgrade", r.name, cluster.Chart(), "--namespace", r.name}, cluster.Set(all("replicas=3")...))...)
	m.Stop()
	r.read(t)
	m = r.start(t)
	pool := &v1alpha1.SubnetPool{ObjectMeta: s.meta("pool"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}}
	s.create(t, pool)
	s.await(t, "the new part works", pool, func() bool { return len(pool.Finalizers) > 0 })
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(group), group))
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	s.await(t, "the leader registers its own webhooks", config, func() bool { return len(config.Webhooks) == 3 })
	if config.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		t.Errorf("the registration has the labels %v", config.Labels)
	}
	// Once more, now that the manager has written to what is Helm's.
	helm(t, slices.Concat([]string{"upgrade", r.name, cluster.Chart(), "--namespace", r.name}, cluster.Set(all("replicas=2")...))...)
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	if len(config.Webhooks) != 3 {
		t.Errorf("an upgrade left %d webhooks", len(config.Webhooks))
	}

	// The manager is the last to know.
	m.MayBeRefused()
	helm(t, "uninstall", r.name, "--namespace", r.name)
	cluster.Eventually(t, "no webhook is called any more", func() error {
		return c.Create(t.Context(), &v2alpha2.PodGroup{ObjectMeta: s.meta("free"), Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "Free"}}}}, client.DryRunAll)
	})
	m.Stop()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), config); !apierrors.IsNotFound(err) {
		t.Errorf("the registration is still there: %v", err)
	}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(group), group))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
	purge(t, c)
}

// Definitions that Helm installs are there before the manager, and stay when the release is
// uninstalled.
func TestCRDsOfHelm(t *testing.T) {
	c := server.Client(t, nil)
	purge(t, c)
	r := install(t, c, "arbor-definitions", only("podgroups", "crds.manage=helm")...)
	m := r.start(t)
	group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t, c), Name: "kept"}}
	must(t, c.Create(t.Context(), group))
	m.Stop()
	helm(t, "uninstall", r.name, "--namespace", r.name)
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(group), group))
	purge(t, c)
}

// certificates are what cert-manager would put into a pod.
type certificates struct {
	dir string
	ca  *pki.CA
}

// renew makes a new authority and a certificate of it. The files are replaced as
// the kubelet does it: all at once, by a link.
func (f *certificates) renew(t *testing.T, name string) {
	t.Helper()
	ca, err := pki.NewCA(name, time.Now(), time.Hour)
	must(t, err)
	f.ca = ca
	pair, err := ca.Issue(pki.Request{CommonName: "localhost", IPs: []net.IP{net.ParseIP("127.0.0.1")}, Now: time.Now(), Life: time.Hour})
	must(t, err)
	data := filepath.Join(f.dir, ".."+name)
	must(t, os.Mkdir(data, 0o700))
	must(t, os.WriteFile(filepath.Join(data, "tls.crt"), pair.Cert, 0o600))
	must(t, os.WriteFile(filepath.Join(data, "tls.key"), pair.Key, 0o600))
	must(t, os.Symlink(".."+name, filepath.Join(f.dir, "..next")))
	must(t, os.Rename(filepath.Join(f.dir, "..next"), filepath.Join(f.dir, "..data")))
}

func (f *certificates) bundle(t *testing.T) []byte {
	t.Helper()
	pair, err := f.ca.Pair()
	must(t, err)

	return bytes.TrimSpace(pair.Cert)
}

// With certificates of another issuer, the manager registers nothing and reads no Secret; its
// metrics describe the files, also after they change.
func TestCertificatesOfOthers(t *testing.T) {
	c := server.Client(t, nil)
	foreign(t, c)
	r := install(t, c, "arbor-given", only("podgroups", "webhooks.certificates=cert-manager")...)
	f := &certificates{dir: t.TempDir()}
	f.renew(t, "first")
	for _, name := range []string{"tls.crt", "tls.key"} {
		must(t, os.Symlink("..data/"+name, filepath.Join(f.dir, name)))
	}
	m := r.start(t, "--webhook-cert-dir="+f.dir)

	refused := func(group *v2alpha2.PodGroup) error {
		err := c.Create(t.Context(), group, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), `admission webhook "podgroups.admission.arbor" denied the request`) {
			return errors.Join(errors.New("it is not rejected by the webhook"), err)
		}

		return nil
	}
	bad := func() *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"}, Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "Bad"}}}}
	}
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	// trust is what cert-manager's injector does; and a process has no Service.
	trust := func() {
		t.Helper()
		must(t, c.Get(t.Context(), client.ObjectKey{Name: r.name}, config))
		url := fmt.Sprintf("https://127.0.0.1:%d/validate-scheduling-run-ai-v2alpha2-podgroup", m.WebhookPort)
		config.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: f.bundle(t)}
		must(t, c.Update(t.Context(), config))
	}
	trust()
	cluster.Eventually(t, "a bad group is rejected", func() error { return refused(bad()) })
	f.renew(t, "second")
	trust()
	cluster.Eventually(t, "a bad group is rejected over the new certificate", func() error { return refused(bad()) })

	given, denied := asked(t, "system:serviceaccount:"+r.name+":"+r.name+"-manager")
	for asked := range denied {
		t.Errorf("used and not granted: %s", asked)
	}
	for asked := range given {
		if asked.resource == "secrets" || asked.resource == "validatingwebhookconfigurations" {
			t.Errorf("the manager asked for %s", asked)
		}
	}
}
