package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	delivered = 1000 // resources in a round
	drifting  = 50
	// deliveryRounds is how often both ways are measured: laps differ by a tenth.
	deliveryRounds = 5
	atRest         = time.Minute
	// settling is how long nothing happens before the manager counts as being at rest.
	settling = 5 * time.Second

	// sliceSize is how many bytes of manifests synthesis puts into a slice.
	sliceSize = 512 << 10
	// revision is the annotation by which two syntheses differ.
	revision = "bench.arbor/revision"
	// applier is who delivers.
	applier = "eno"
)

// What is delivered: of five resources, three are the first and two the second.
// About 1 and 2 KiB, as such things often are. The Deployments are paused, so that
// their controller writes the status once and then rests.
const (
	configMapText = `
apiVersion: v1
kind: ConfigMap
metadata: {labels: {app.kubernetes.io/name: web, app.kubernetes.io/part-of: shop, app.kubernetes.io/managed-by: arbor}}
data:
  log.level: info
  log.format: json
  http.listen: 0.0.0.0:8080
  http.read-timeout: 30s
  http.write-timeout: 30s
  database.url: postgres://shop@database.shop.svc.cluster.local:5432/shop?sslmode=verify-full
  cache.url: redis://cache.shop.svc.cluster.local:6379/0
  features: search,recommendations,checkout-v2,gift-cards,wish-lists,reviews,invoices
  settings.yaml: |
    pools: {database: {min: 4, max: 32, idle: 5m}, cache: {min: 2, max: 16, idle: 1m}}
    limits: {requests: 500, burst: 1000, body: 4Mi, headers: 32Ki}
    retries: {attempts: 5, backoff: 200ms, max: 10s, codes: [502, 503, 504]}
    tracing: {endpoint: "http://tracing.observability.svc:4318", ratio: 0.05, headers: [x-request-id, x-tenant]}
`
	workloadText = `
apiVersion: apps/v1
kind: Deployment
metadata: {labels: {app.kubernetes.io/name: web, app.kubernetes.io/part-of: shop, app.kubernetes.io/managed-by: arbor}}
spec:
  paused: true
  replicas: 0
  revisionHistoryLimit: 3
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}, annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090"}}
    spec:
      serviceAccountName: web
      securityContext: {runAsNonRoot: true, fsGroup: 2000, seccompProfile: {type: RuntimeDefault}}
      initContainers:
      - {name: migrate, image: "shop/migrate:1", command: [migrate, up], resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 128Mi}}}
      containers:
      - name: web
        image: shop/web:1
        args: [--config=/etc/web/settings.yaml, --listen=0.0.0.0:8080]
        ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]
        env:
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: DATABASE_PASSWORD, valueFrom: {secretKeyRef: {name: database, key: password}}}
        - {name: REGION, value: west}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5, failureThreshold: 3}
        livenessProbe: {httpGet: {path: /live, port: http}, periodSeconds: 20, failureThreshold: 3}
        resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {memory: 512Mi}}
        volumeMounts: [{name: config, mountPath: /etc/web}, {name: tmp, mountPath: /tmp}]
      - {name: proxy, image: "shop/proxy:1", ports: [{name: proxy, containerPort: 15001}], resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}}
      volumes: [{name: config, configMap: {name: web}}, {name: tmp, emptyDir: {}}]
`
)

// resources are the manifests of a synthesis.
func resources(ns string, n, rev int) ([]*unstructured.Unstructured, error) {
	all := make([]*unstructured.Unstructured, n)
	for i := range all {
		text, name := configMapText, fmt.Sprintf("settings-%04d", i)
		if i%5 > 2 {
			text, name = workloadText, fmt.Sprintf("web-%04d", i)
		}
		o, err := parsed(text, ns, name)
		if err != nil {
			return nil, err
		}
		o.SetAnnotations(map[string]string{revision: strconv.Itoa(rev)})
		all[i] = o
	}

	return all, nil
}

// A depot is a control plane that has compositions.
type depot struct {
	client.WithWatch

	up *cluster.Up
}

func newDepot(ctx context.Context, u *cluster.Up) (*depot, error) {
	plain, err := u.NewClient(nil)
	if err != nil {
		return nil, err
	}
	if err := cluster.Define(ctx, plain, enov1.GroupVersion, enov1.CompositionKind, enov1.ResourceSliceKind); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(u.Config)
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: plain.Scheme()})

	return &depot{c, u}, err
}

// delivery measures how fast resources are delivered, and how fast a plain loop
// would apply them; then what they cost at rest, and how fast drift is corrected.
func delivery(b *board) error {
	return onControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		d, err := newDepot(ctx, u)
		if err != nil {
			return err
		}
		all, err := d.speed(ctx)
		if err != nil {
			return err
		}
		b.show(all...)
		m, err := d.manager(ctx, "warm-last")
		if err != nil {
			return err
		}
		defer m.Stop()
		if _, _, err := d.deliver(ctx, m, "settled", delivered, 1); err != nil {
			return err
		}
		if err := d.settled(ctx, "settled", delivered); err != nil {
			return err
		}
		idle, err := d.idle(ctx)
		if err != nil {
			return err
		}
		b.show(idle...)
		drift, err := d.drift(ctx, "settled")
		if err != nil {
			return err
		}
		b.show(drift...)

		return nil
	})
}

// manager starts one that delivers and nothing else, and has it deliver something,
// so that everything is warm.
func (d *depot) manager(ctx context.Context, warm string) (*cluster.Manager, error) {
	m, err := d.up.Manager(d.up.Administrator(), "--controllers=delivery", "--webhooks=false", "--log-level=error") //nolint:contextcheck // it ends when it is stopped
	if err != nil {
		return nil, err
	}
	if err = m.Await(); err == nil {
		_, _, err = d.deliver(ctx, m, warm, 2*clients, 1)
	}
	if err != nil {
		m.Stop()

		return nil, err
	}

	return m, nil
}

// A lap is one way to bring resources to a cluster: first when there are none, and
// then when all of them change.
type lap struct{ made, changed, requests, cpu float64 }

// speed compares both ways, in turns and in both orders, so that whatever else the machine does
// is to the disadvantage of both.
func (d *depot) speed(ctx context.Context) ([]result, error) {
	var plain, ours []lap
	for i := range deliveryRounds + 1 {
		var p, o lap
		err := inTurns(i, func() (err error) {
			p, err = d.plainRound(ctx, fmt.Sprintf("plain-%d", i))

			return err
		}, func() (err error) {
			o, err = d.deliveredRound(ctx, fmt.Sprintf("delivered-%d", i))

			return err
		})
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first round warms everything up
			plain, ours = append(plain, p), append(ours, o)
		}
	}
	of := func(all []lap, figure func(lap) float64) float64 {
		var values []float64
		for _, r := range all {
			values = append(values, figure(r))
		}

		return median(values)
	}
	made := func(r lap) float64 { return r.made }
	changed := func(r lap) float64 { return r.changed }
	ratio := func(figure func(lap) float64) float64 {
		var values []float64
		for i := range ours {
			values = append(values, figure(ours[i])/figure(plain[i]))
		}

		return median(values)
	}

	return []result{
		{"delivery/plain", of(plain, made)},
		{"delivery/delivered", of(ours, made)},
		{"delivery/ratio", ratio(made)},
		{"delivery/plain-changes", of(plain, changed)},
		{"delivery/delivered-changes", of(ours, changed)},
		{"delivery/ratio-changes", ratio(changed)},
		{"delivery/requests", of(ours, func(r lap) float64 { return r.requests })},
		{"delivery/cpu", of(ours, func(r lap) float64 { return r.cpu })},
	}, nil
}

// plainRound applies each resource and does nothing else, while no manager runs.
func (d *depot) plainRound(ctx context.Context, ns string) (r lap, err error) {
	if err := d.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return r, err
	}
	for rev, speed := range []*float64{&r.made, &r.changed} {
		all, err := resources(ns, delivered, rev)
		if err != nil {
			return r, err
		}
		*speed, err = perSecond(delivered, func(i int) error {
			return d.Apply(ctx, client.ApplyConfigurationFromUnstructured(all[i-1]), client.ForceOwnership, client.FieldOwner(applier))
		})
		if err != nil {
			return r, err
		}
		fmt.Fprintf(os.Stderr, "  plain loop: %s %.2f s\n", [...]string{"made", "changed"}[rev], delivered / *speed)
		if err := d.settled(ctx, ns, delivered); err != nil {
			return r, err
		}
	}

	return r, nil
}

// deliveredRound has a manager of its own.
func (d *depot) deliveredRound(ctx context.Context, ns string) (r lap, err error) {
	m, err := d.manager(ctx, "warm-"+ns)
	if err != nil {
		return r, err
	}
	defer m.Stop()
	asked, err := m.Value("rest_client_requests_total")
	if err != nil {
		return r, err
	}
	spent, err := cpu(m.PID())
	if err != nil {
		return r, err
	}
	for rev, speed := range []*float64{&r.made, &r.changed} {
		took, requests, err := d.deliver(ctx, m, ns, delivered, rev)
		if err != nil {
			return r, err
		}
		*speed = delivered / took.Seconds()
		fmt.Fprintf(os.Stderr, "  arbor-manager: %s %.2f s\n", [...]string{"made", "changed"}[rev], took.Seconds())
		if rev == 0 {
			now, err := cpu(m.PID())
			if err != nil {
				return r, err
			}
			r.requests, r.cpu = (requests-asked)/delivered, (now-spent)/delivered
		}
		if err := d.settled(ctx, ns, delivered); err != nil {
			return r, err
		}
	}
	// The next manager has nothing to do with these.
	err = d.DeleteAllOf(ctx, &enov1.Composition{}, client.InNamespace(ns))

	return r, err
}

// deliver has a composition deliver a revision. It takes the time from the moment
// when the slices are there and the composition says so to the moment when all are
// reconciled, and returns the requests of the manager up to then.
func (d *depot) deliver(ctx context.Context, m *cluster.Manager, ns string, n, rev int) (time.Duration, float64, error) {
	c, err := d.composition(ctx, ns)
	if err != nil {
		return 0, 0, err
	}
	all, err := resources(ns, n, rev)
	if err != nil {
		return 0, 0, err
	}
	next, err := d.synthesis(ctx, c, all)
	if err != nil {
		return 0, 0, err
	}
	const actions = `eno_reconciliation_actions_total`
	before, err := m.Value(actions)
	if err != nil {
		return 0, 0, err
	}
	slices := &metav1.PartialObjectMetadataList{}
	slices.SetGroupVersionKind(enov1.GroupVersion.WithKind(enov1.ResourceSliceKind))
	written, err := d.Watch(ctx, slices, client.InNamespace(ns))
	if err != nil {
		return 0, 0, err
	}
	defer written.Stop()
	began := time.Now()
	c.Status.PreviousSynthesis, c.Status.CurrentSynthesis = c.Status.CurrentSynthesis, next
	if err := d.Status().Update(ctx, c); err != nil {
		return 0, 0, err
	}
	ended, err := onEvents(ctx, written, func() (bool, error) {
		now, err := m.Value(actions)
		if err != nil || now < before+float64(n) {
			return false, err
		}

		return d.reconciled(ctx, ns, next)
	})
	took := ended.Sub(began)
	if err != nil {
		return 0, 0, err
	}
	requests, err := m.Value("rest_client_requests_total")
	if err != nil {
		return 0, 0, err
	}

	return took, requests, d.check(ctx, ns, n, rev)
}

// onEvents asks again after each event of a watch, and returns when the event came after which
// the answer was yes. Asking every now and then would cost the manager a tenth of its processor
// time: the answer is all its metrics.
func onEvents(ctx context.Context, events watch.Interface, met func() (bool, error)) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case _, open := <-events.ResultChan():
			if !open {
				return time.Time{}, errors.New("the watch of the slices ended")
			}
		}
		at := time.Now()
		if ok, err := met(); ok || err != nil {
			return at, err
		}
	}
}

// idle counts what is asked for while nothing happens, by anybody: there is nobody
// else who would ask for these. Watches do not count, they are one for each kind.
//
// After a delivery the manager reads each object whose controller has written a status, for
// its health. That ends, and is waited for.
func (d *depot) idle(ctx context.Context) ([]result, error) {
	before := -1.0
	err := until(ctx, settling, func(ctx context.Context) (bool, error) {
		now, err := d.requests(ctx)
		rests := now == before
		before = now

		return rests, err
	})
	if err != nil {
		return nil, err
	}
	<-time.After(atRest)
	after, err := d.requests(ctx)

	return []result{{"delivery/idle-requests", (after - before) / delivered / atRest.Minutes()}}, err
}

// requests that the API server has answered about what is delivered, and about
// what it is delivered from.
func (d *depot) requests(ctx context.Context) (float64, error) {
	hc, err := rest.HTTPClientFor(d.up.Config)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.up.Config.Host+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := hc.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	return countRequests(response.Body)
}

func countRequests(metrics io.Reader) (float64, error) {
	about := []string{`resource="configmaps"`, `resource="deployments"`, `resource="resourceslices"`, `resource="compositions"`}
	sum, found := 0.0, false
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		series, ok := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !ok || strings.Contains(series, `verb="WATCH"`) || !slices.ContainsFunc(about, func(label string) bool { return strings.Contains(series, label) }) {
			continue
		}
		n, err := strconv.ParseFloat(series[strings.LastIndexByte(series, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read %q: %w", lines.Text(), err)
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, errors.New("the API server has no apiserver_request_total of what is delivered")
	}

	return sum, lines.Err()
}
