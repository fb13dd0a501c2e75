package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/cluster/network"
)

// outage is how long faults last whose length matters.
const outage = time.Minute

// moreRequests is how many times as many requests as under the load alone a manager may send
// while something fails.
const moreRequests = 3

// lasts waits for the length of a fault. Managers that end are started again.
func (w *world) lasts(d time.Duration) {
	w.Helper()
	over := time.Now().Add(d)
	for tick := time.NewTicker(100 * time.Millisecond); time.Now().Before(over); <-tick.C {
		w.revive()
	}
}

// rate is how many requests a second managers send in the next time.
func (w *world) rate(d time.Duration) float64 {
	w.Helper()
	from, began := w.proxy.Requests(), time.Now()
	w.lasts(d)

	return float64(w.proxy.Requests()-from) / time.Since(began).Seconds()
}

// overloaded has the API server answer 429 to everything for a minute, as priority and fairness do
// when a level has no seats left. The leader ends, since it cannot renew its lease. The other
// replica waits, and leads when the API server answers again.
func overloaded(w *world) int {
	w.Helper()
	w.leader()
	exits := w.exits
	stop := w.proxy.Reject(w, ".", http.StatusTooManyRequests, 0, 0)
	w.proxy.Cut()
	rate := w.rate(outage)
	exits = w.exits - exits
	stop()
	began := time.Now()
	w.leader()
	took := time.Since(began)
	w.Logf("in %s of 429: %.1f requests/s, managers ended %d times; one leads %s after it", outage, rate, exits, took.Round(100*time.Millisecond))
	// A process gives up after some ten seconds, and both may.
	if limit := 2 * int(outage/(8*time.Second)); exits > limit {
		w.Errorf("managers ended %d times, at most %d are expected", exits, limit)
	}
	if rate > 50 {
		w.Errorf("%.1f requests/s were sent to an API server that answers 429", rate)
	}
	w.underLoad(50)

	return 1
}

// kill kills the API server, with etcd in the same process, and waits until arbor up has started
// it again.
func kill(w *world) {
	w.Helper()
	pid, err := server.Child("kube-apiserver")
	must(w, err)
	must(w, syscall.Kill(pid, syscall.SIGKILL))
	cluster.Eventually(w, "the API server is back", func() error {
		w.revive()
		if now, err := server.Child("kube-apiserver"); err != nil || now == pid {
			return fmt.Errorf("its process is %d (%w)", now, err)
		}

		return w.c.List(w.Context(), &corev1.NamespaceList{})
	})
}

// etcd is a client of the database.
func etcd(t testing.TB) *clientv3.Client {
	t.Helper()
	address, pki, err := server.Etcd()
	must(t, err)
	tls, err := transport.TLSInfo{
		CertFile: filepath.Join(pki, "etcd.crt"), KeyFile: filepath.Join(pki, "etcd.key"), TrustedCAFile: filepath.Join(pki, "etcd-ca.crt"),
	}.ClientConfig()
	must(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + address}, TLS: tls, DialTimeout: patience})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })

	return c
}

// compacted cuts the watches, which had no bookmarks before, compacts etcd during that time, and has the
// API server forget the events that it remembers. So every watch begins at a resource version that
// is too old.
func compacted(w *world) {
	w.Helper()
	defer w.proxy.Set(network.Rates{})
	w.proxy.Set(network.Rates{NoBookmarks: true})
	w.proxy.Cut()
	w.underLoad(100)
	release := w.proxy.Hold(w, "^WATCH ")
	w.proxy.Cut()
	w.underLoad(100)
	compact(w)
	kill(w)
	w.admitted()
	expired := w.proxy.Expired()
	release()
	cluster.Eventually(w, "watches have expired", func() error {
		w.revive()
		if n := w.proxy.Expired() - expired; n < 5 {
			return fmt.Errorf("%d have", n)
		}

		return nil
	})
	w.Logf("%d watches were told that their resource version is too old", w.proxy.Expired()-expired)
	w.underLoad(50)
	w.binds()
}

// admitted waits until the API server knows again what the manager may read. Until then it rejects
// its watches, and the manager does not choose where they begin when it retries.
func (w *world) admitted() {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimPrefix(w.kubeconfig, "--kubeconfig="))
	must(w, err)
	c, err := client.New(config, client.Options{Scheme: w.c.Scheme()})
	must(w, err)
	cluster.Eventually(w, "the manager may read", func() error {
		var all error
		for _, list := range []client.ObjectList{&enov1.CompositionList{}, &v1alpha1.SubnetList{}, &v2alpha2.PodGroupList{}, &corev1.ConfigMapList{}} {
			all = errors.Join(all, c.List(w.Context(), list))
		}

		return all
	})
}

// compact removes all former versions of everything.
func compact(w *world) {
	w.Helper()
	c := etcd(w)
	now, err := c.Get(w.Context(), "compaction")
	must(w, err)
	_, err = c.Compact(w.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	must(w, err)
}

// noSpace has etcd reject everything that needs space, as it does when its quota is used up,
// until an administrator has made space and has disarmed the alarm. Deletions are carried out.
func noSpace(w *world) {
	w.Helper()
	window := 20 * time.Second
	if *rounds == 1 {
		window = 5 * time.Second
	}
	usual := w.rate(5 * time.Second)
	c := etcd(w)
	status, err := c.Status(w.Context(), c.Endpoints()[0])
	must(w, err)
	_, err = pb.NewMaintenanceClient(c.ActiveConnection()).Alarm(w.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE,
	})
	must(w, err)
	disarm := func() error {
		_, err := c.AlarmDisarm(context.WithoutCancel(w.Context()), &clientv3.AlarmMember{MemberID: status.Header.MemberId, Alarm: pb.AlarmType_NOSPACE})

		return err
	}
	w.Cleanup(func() { _ = disarm() })
	o := &corev1.ConfigMap{ObjectMeta: w.load.meta(w.load.name("full"))}
	if err := w.c.Create(w.Context(), o); err == nil || !strings.Contains(err.Error(), "space exceeded") {
		w.Errorf("a ConfigMap got %v although etcd has no space", err)
	}
	rate := w.rate(window)
	w.Logf("%.1f requests/s under the load, and %.1f without space", usual, rate)
	if rate > moreRequests*usual {
		w.Errorf("%.1f requests/s were sent while nothing could be written, %.1f are usual", rate, usual)
	}
	must(w, disarm())
	w.underLoad(100)
	w.binds()
}
