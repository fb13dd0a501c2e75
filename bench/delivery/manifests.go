package delivery

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/bench/harness"
)

// revision is the annotation by which two syntheses differ.
const revision = "bench.arbor/revision"

// The delivered manifests: of five resources, three are the first and two the second. They have
// about 1 and 2 KiB, as is common. The Deployments are paused, so that their controller writes the
// status once and then rests.
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
		o, err := harness.ParseObject(text, ns, name)
		if err != nil {
			return nil, err
		}
		o.SetAnnotations(map[string]string{revision: strconv.Itoa(rev)})
		all[i] = o
	}

	return all, nil
}
