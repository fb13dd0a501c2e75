package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

const namespace = "arbor-system"

// A rendering is the chart with some values, and what comes of it.
type rendering struct {
	values []string
	has    []string // kind/name
	not    []string
	args   []string // of the manager, or of the scheduler where there is one
}

func all(more ...string) []string {
	return append([]string{"podgroups.enabled=true", "subnets.enabled=true", "synthesis.enabled=true", "delivery.enabled=true", "delivery.scope=cluster"}, more...)
}

func only(part string, more ...string) []string {
	return append([]string{"podgroups.enabled=false", "subnets.enabled=false", "synthesis.enabled=false", "delivery.enabled=false", part + ".enabled=true", "delivery.scope=cluster"}, more...)
}

// tenants have delivery write as ServiceAccounts.
func tenants(more ...string) []string {
	return only("delivery", append([]string{"delivery.scope=namespace"}, more...)...)
}

func gangs(more ...string) []string { return append([]string{"scheduler.enabled=true"}, more...) }

var matrix = map[string]rendering{
	"Defaults": {
		has:  []string{"Deployment/arbor-manager", "PodDisruptionBudget/arbor-manager", "NetworkPolicy/arbor-manager", "Service/arbor-webhook", "Service/arbor-metrics", "ValidatingWebhookConfiguration/arbor", "ClusterRole/arbor-podgroups", "ClusterRole/arbor-subnets", "ValidatingAdmissionPolicy/arbor-subnets", "ValidatingAdmissionPolicyBinding/arbor-subnets", "FlowSchema/arbor-leases"},
		not:  []string{"ClusterRole/arbor-synthesis", "ClusterRole/arbor-delivery", "CustomResourceDefinition/", "ServiceMonitor/", "PrometheusRule/", "Certificate/", "ConfigMap/", "Deployment/arbor-scheduler", "ClusterRole/arbor-scheduler", "ServiceAccount/arbor-scheduler"},
		args: []string{"--controllers=podgroups,subnets", "--crds=install", "--leader-elect=true", "--webhook-service=arbor-webhook", "--webhook-configuration=arbor", "--webhook-drain=5s"},
	},
	"Drain": {values: []string{"webhooks.drainSeconds=30"}, args: []string{"--webhook-drain=30s"}},
	"WebhookSettings": {
		values: []string{"webhooks.failurePolicy=Ignore", "webhooks.timeoutSeconds=10", "webhooks.namespaceSelector.matchLabels.team=a", "webhooks.objectSelector.matchExpressions[0].key=x", "webhooks.objectSelector.matchExpressions[0].operator=Exists"},
		args:   []string{"--webhook-failure-policy=Ignore", "--webhook-timeout-seconds=10", `--webhook-namespace-selector={"matchLabels":{"team":"a"}}`, `--webhook-object-selector={"matchExpressions":[{"key":"x","operator":"Exists"}]}`},
	},
	"PodgroupsAlone": {values: only("podgroups"), has: []string{"ClusterRole/arbor-podgroups"}, not: []string{"ClusterRole/arbor-subnets", "ValidatingAdmissionPolicy/", "ValidatingAdmissionPolicyBinding/"}, args: []string{"--controllers=podgroups"}},
	"SubnetsAlone":   {values: only("subnets"), has: []string{"ClusterRole/arbor-subnets"}, not: []string{"ClusterRole/arbor-podgroups"}, args: []string{"--controllers=subnets"}},
	"SynthesisAlone": {values: only("synthesis"), has: []string{"ClusterRole/arbor-synthesis"}, not: []string{"ClusterRole/arbor-delivery", "Service/arbor-webhook", "ValidatingWebhookConfiguration/"}, args: []string{"--controllers=synthesis", "--webhooks=false", "--synthesis-timeout=30s", "--rollout-max-failures=3"}},
	"MaxFailures":    {values: only("synthesis", "synthesis.rolloutMaxFailures=0"), args: []string{"--rollout-max-failures=0"}},
	"Inputs":         {values: only("synthesis", "delivery.scope=namespace", "synthesis.inputNamespaces={shared,charts}"), args: []string{"--delivery-scope=namespace", "--input-namespaces=shared,charts"}},
	"DeliveryAlone":  {values: only("delivery"), has: []string{"ClusterRole/arbor-delivery"}, not: []string{"ClusterRole/arbor-synthesis", "Service/arbor-webhook", "ClusterRole/arbor-impersonator"}, args: []string{"--controllers=delivery", "--delivery-scope=cluster", "--delivery-workers=16", "--drift=correct", "--field-manager=eno", "--fail-open=false", "--readiness=eno", "--health-timeout=10m"}},
	"DriftReported":  {values: only("delivery", "delivery.drift=report", "delivery.failOpen=true", "delivery.fieldManager=eno-edge"), args: []string{"--drift=report", "--field-manager=eno-edge", "--fail-open=true"}},
	"Readiness":      {values: only("delivery", "delivery.readiness=kstatus", "delivery.healthTimeout=1h"), args: []string{"--readiness=kstatus", "--health-timeout=1h"}},
	"PruneShare":     {values: only("delivery", "delivery.pruneGuard=50"), args: []string{"--prune-guard=50"}},
	"Everything": {
		values: all("metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboards.enabled=true", "crds.manage=helm", "metrics.readers[0].kind=ServiceAccount", "metrics.readers[0].namespace=monitoring", "metrics.readers[0].name=prometheus"),
		has:    []string{"ServiceMonitor/arbor-manager", "PrometheusRule/arbor-subnets", "PrometheusRule/arbor-compositions", "PrometheusRule/arbor-admission", "ConfigMap/arbor-dashboard-subnets", "ConfigMap/arbor-dashboard-admission", "CustomResourceDefinition/podgroups.scheduling.run.ai", "CustomResourceDefinition/symphonies.eno.azure.io", "ClusterRoleBinding/arbor-metrics-reader"},
		args:   []string{"--controllers=podgroups,subnets,synthesis,delivery", "--crds=check"},
	},
	"RulesOfPodgroups": {values: only("podgroups", "metrics.rules.enabled=true"), has: []string{"PrometheusRule/arbor-admission", "PrometheusRule/arbor-manager"}, not: []string{"PrometheusRule/arbor-subnets", "PrometheusRule/arbor-compositions", "PrometheusRule/arbor-gangs"}},
	"RulesOfSubnets":   {values: only("subnets", "metrics.rules.enabled=true"), has: []string{"PrometheusRule/arbor-admission", "PrometheusRule/arbor-subnets"}, not: []string{"PrometheusRule/arbor-compositions"}},
	"Unprotected":      {values: []string{"deletionProtection=false"}, has: []string{"ClusterRole/arbor-subnets"}, not: []string{"ValidatingAdmissionPolicy/", "ValidatingAdmissionPolicyBinding/"}},
	"NoWebhooks":       {values: []string{"webhooks.enabled=false"}, has: []string{"Deployment/", "ValidatingAdmissionPolicy/arbor-subnets"}, not: []string{"Service/arbor-webhook", "ValidatingWebhookConfiguration/"}, args: []string{"--webhooks=false"}},
	"CertManager": {
		values: []string{"webhooks.certificates=cert-manager"},
		has:    []string{"Certificate/arbor-webhook", "Certificate/arbor-webhook-authority", "Issuer/arbor-webhook", "ValidatingWebhookConfiguration/arbor"},
		args:   []string{"--webhook-cert-dir=/etc/arbor/webhook"},
	},
	"CertManagerIssuer": {values: []string{"webhooks.certificates=cert-manager", "webhooks.certManager.issuerRef.name=mine", "webhooks.certManager.issuerRef.kind=ClusterIssuer", "webhooks.timeoutSeconds=2"}, args: []string{"--webhook-timeout-seconds=2"}, has: []string{"Certificate/arbor-webhook"}, not: []string{"Issuer/", "Certificate/arbor-webhook-authority"}},
	"NoFlowSchema":      {values: []string{"flowSchema.enabled=false"}, not: []string{"FlowSchema/"}},
	"OneReplica":        {values: []string{"replicas=1"}, has: []string{"Deployment/"}, not: []string{"PodDisruptionBudget/"}},
	"NoNetworkPolicy":   {values: []string{"networkPolicy.enabled=false"}, not: []string{"NetworkPolicy/"}},
	"NoMetrics":         {values: []string{"metrics.enabled=false"}, not: []string{"Service/arbor-metrics"}, args: []string{"--metrics-bind-address=0"}},
	"ClusterAdmin":      {values: only("delivery", "delivery.clusterAdmin=true"), has: []string{"ClusterRole/arbor-delivery"}},
	"Remote":            {values: only("delivery", "delivery.remoteKubeconfigSecret=target"), args: []string{"--remote-kubeconfig=/etc/arbor/remote/kubeconfig"}},
	"Tenants": {
		values: tenants("delivery.tenantNamespaces={tenant}", "delivery.defaultServiceAccount=deployer"),
		has:    []string{"ClusterRole/arbor-impersonator", "RoleBinding/arbor-impersonator"},
		not:    []string{"ClusterRoleBinding/arbor-impersonator"},
		args:   []string{"--delivery-scope=namespace", "--default-service-account=deployer", "--forbidden-grace=1h"},
	},
	"NoTenants":        {values: tenants(), has: []string{"ClusterRole/arbor-impersonator"}, not: []string{"RoleBinding/arbor-impersonator"}, args: []string{"--delivery-scope=namespace", "--default-service-account="}},
	"TenantsElsewhere": {values: tenants("delivery.remoteKubeconfigSecret=target"), not: []string{"ClusterRole/arbor-impersonator"}},
	"PodsNamed":        {values: only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.namespace=arbor-system-synthesizers"), has: []string{"Namespace/arbor-system-synthesizers"}},
	"Pods":             {values: only("synthesis", "synthesis.pods.enabled=true"), has: []string{"ServiceAccount/arbor-synthesizer", "Role/arbor-synthesizer-pods", "Namespace/arbor-system-synthesizers", "NetworkPolicy/arbor-synthesizers", "ValidatingAdmissionPolicy/arbor-publisher"}, args: []string{"--synthesizer-pod-namespace=arbor-system-synthesizers", "--synthesizer-pod-service-account=arbor-synthesizer", "--image-pull-timeout=5m", "--synthesizer-pod-requests=cpu=50m,memory=64Mi", "--synthesizer-pod-limits=cpu=2,memory=1Gi", "--synthesizer-pod-helper-requests=cpu=10m,memory=32Mi", "--synthesizer-pod-helper-limits=cpu=1,memory=512Mi"}},
	"PodResources": {
		values: only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.imagePullTimeout=10m", "synthesis.pods.resources.limits.memory=2Gi", "synthesis.pods.resources.requests=null", "synthesis.pods.helperResources.requests=null", "synthesis.pods.helperResources.limits.cpu=2"),
		args:   []string{"--image-pull-timeout=10m", "--synthesizer-pod-requests=", "--synthesizer-pod-limits=cpu=2,memory=2Gi", "--synthesizer-pod-helper-requests=", "--synthesizer-pod-helper-limits=cpu=2,memory=512Mi"},
	},
	"PodRequests": { // a default limit could be less than the request of the user, which the manager rejects
		values: only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.resources.requests.memory=2Gi"),
		args:   []string{"--synthesizer-pod-requests=cpu=50m,memory=2Gi", "--synthesizer-pod-limits=cpu=2"},
	},
	"PodLimits": { // as could a default request be more than the limit
		values: only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.resources.limits.memory=32Mi", "synthesis.pods.resources.limits.cpu=10m"),
		args:   []string{"--synthesizer-pod-requests=", "--synthesizer-pod-limits=cpu=10m,memory=32Mi"},
	},
	"PodPlaces": {
		values: only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.tolerations={pool,disk=ssd:NoExecute}", "synthesis.pods.nodeAffinity=pool=synth", "synthesis.pods.labels.team=a", "synthesis.pods.annotations.note=b"),
		args:   []string{"--taint-toleration=pool,disk=ssd:NoExecute", "--node-affinity=pool=synth", "--synthesizer-pod-labels=team=a", `--synthesizer-pod-annotations="note=b"`},
	},
	"PodsElsewhere":    {values: only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.namespace=arbor-system", "networkPolicy.synthesizerEgress[0].ports[0].port=53"), has: []string{"NetworkPolicy/arbor-synthesizers"}, not: []string{"Namespace/"}, args: []string{"--synthesizer-pod-namespace=arbor-system"}},
	"Policies":         {values: all("policies.action=Deny", "policies.extraWriters[0]=system:serviceaccount:velero:velero"), has: []string{"ValidatingAdmissionPolicy/arbor-slices", "ValidatingAdmissionPolicy/arbor-status", "ValidatingAdmissionPolicy/arbor-use", "ValidatingAdmissionPolicy/arbor-use-symphonies", "ValidatingAdmissionPolicyBinding/arbor-use-symphonies"}, not: []string{"ValidatingAdmissionPolicy/arbor-publisher"}},
	"NoPolicies":       {values: only("synthesis", "synthesis.pods.enabled=true", "policies.enabled=false"), not: []string{"ValidatingAdmissionPolicy/", "ValidatingAdmissionPolicyBinding/"}},
	"UserRoles":        {values: all("rbac.aggregateTo=edit"), has: []string{"ClusterRole/arbor-view", "ClusterRole/arbor-edit"}},
	"NamespaceCleanup": {values: only("synthesis", "synthesis.namespaceCleanup=true"), args: []string{"--namespace-cleanup=true"}},
	"OwnerReferences":  {values: all("rbac.ownerReferences=true")},
	"Digest":           {values: []string{"image.digest=sha256:" + strings.Repeat("0", 64)}},
	"Scheduler": {
		values: []string{"scheduler.enabled=true"},
		has: []string{
			"Deployment/arbor-scheduler", "PodDisruptionBudget/arbor-scheduler", "NetworkPolicy/arbor-scheduler", "ServiceAccount/arbor-scheduler", "Service/arbor-scheduler-metrics",
			"ClusterRole/arbor-scheduler", "ClusterRoleBinding/arbor-scheduler", "ClusterRoleBinding/arbor-scheduler-kubernetes", "ClusterRoleBinding/arbor-scheduler-volumes",
			"Role/arbor-scheduler", "RoleBinding/arbor-scheduler", "RoleBinding/arbor-scheduler-authentication",
		},
		not: []string{"ConfigMap/", "ServiceMonitor/"},
		args: []string{
			"--scheduler-name=arbor-scheduler", "--kube-api-qps=500", "--kube-api-burst=1000", "--minimums=arbor", "--stale-grace=1m", "--gang-preemption=true",
			"--respect-pdb=false", "--max-eviction-ratio=0", "--bind-timeout=10m", "--leader-elect=true",
			"--leader-elect-resource-namespace=arbor-system", "--leader-elect-resource-name=arbor-scheduler", "--logging-format=json", "--v=1",
		},
	},
	"SchedulerOfKAI": {
		values: []string{"scheduler.enabled=true", "scheduler.names={arbor-scheduler,kai-scheduler}", "scheduler.minimums=kai", "scheduler.staleGrace=0s", "scheduler.preemption=false", "scheduler.replicas=1", "scheduler.clientConnection.qps=20", "scheduler.clientConnection.burst=40", "metrics.enabled=false", "networkPolicy.enabled=false"},
		not:    []string{"PodDisruptionBudget/arbor-scheduler", "Service/arbor-scheduler-metrics", "NetworkPolicy/"},
		args:   []string{"--scheduler-name=arbor-scheduler,kai-scheduler", "--kube-api-qps=20", "--kube-api-burst=40", "--minimums=kai", "--stale-grace=0s", "--gang-preemption=false"},
	},
	"SchedulerLimits": {
		values: gangs("scheduler.respectPDB=true", "scheduler.maxEvictionRatio=2.5", "scheduler.bindTimeout=90s"),
		args:   []string{"--respect-pdb=true", "--max-eviction-ratio=2.5", "--bind-timeout=90s"},
	},
	"Guard":   {values: []string{"podgroups.priorityClassGuard=all"}, args: []string{"--priority-class-guard=all"}},
	"NoGuard": {values: []string{"podgroups.priorityClassGuard=off"}, args: []string{"--priority-class-guard=off"}},
	"SchedulerWatched": {
		values: []string{"scheduler.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboards.enabled=true"},
		has:    []string{"ServiceMonitor/arbor-scheduler", "PrometheusRule/arbor-gangs", "ConfigMap/arbor-dashboard-gangs"},
	},
	"SchedulerConfigured": {
		values: []string{"scheduler.enabled=true", "scheduler.config=apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", "scheduler.image.digest=sha256:" + strings.Repeat("0", 64), "scheduler.extraArgs[0]=--profiling=false", "scheduler.nodeSelector.disk=ssd", "scheduler.priorityClassName=system-cluster-critical", "scheduler.tolerations[0].operator=Exists", "imagePullSecrets[0].name=pull"},
		has:    []string{"ConfigMap/arbor-scheduler"},
		args:   []string{"--config=/etc/arbor/scheduler/config.yaml", "--leader-elect-resource-name=arbor-scheduler", "--profiling=false"},
	},
	"Placed": {values: []string{"nodeSelector.disk=ssd", "priorityClassName=system-cluster-critical", "podLabels.team=a", "podAnnotations.note=b", "tolerations[0].operator=Exists", "imagePullSecrets[0].name=pull", "serviceAccount.annotations.role=r", "networkPolicy.apiServerCIDRs[0]=10.0.0.0/8", "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring", "extraArgs[0]=--pprof-bind-address=127.0.0.1:6060"}, args: []string{"--pprof-bind-address=127.0.0.1:6060"}},
}

func render(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()

	return objects(t, helm(t, slices.Concat([]string{"template", "arbor", cluster.Chart(), "--namespace", namespace}, cluster.Set(values...))...))
}

// Each choice of values passes Helm's own lint, renders what it should and nothing
// that it should not, and a real API server takes all of it.
func TestMatrix(t *testing.T) {
	c := server.Client(t, nil)
	foreign(t, c)
	purge(t, c)
	for _, name := range []string{namespace, namespace + "-synthesizers", "tenant"} {
		must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), namespaceObject(name, "restricted"))))
	}
	for name, tc := range matrix {
		t.Run(name, func(t *testing.T) {
			helm(t, slices.Concat([]string{"lint", "--strict", cluster.Chart()}, cluster.Set(tc.values...))...)
			made := render(t, tc.values...)
			for _, want := range tc.has {
				kind, name, _ := strings.Cut(want, "/")
				if find(made, kind, name) == nil {
					t.Errorf("there is no %s", want)
				}
			}
			for _, not := range tc.not {
				kind, name, _ := strings.Cut(not, "/")
				if o := find(made, kind, name); o != nil {
					t.Errorf("there is %s %s", kind, o.GetName())
				}
			}
			for _, want := range tc.args {
				if !slices.Contains(argsOf(t, made), want) {
					t.Errorf("%s is not among %q", want, argsOf(t, made))
				}
			}
			for _, o := range made {
				must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.DryRunAll))
			}
		})
	}
}

// argsOf are those of the scheduler, or of the manager where there is none.
func argsOf(t *testing.T, made []*unstructured.Unstructured) []string {
	t.Helper()
	deployment := find(made, "Deployment", "arbor-scheduler")
	if deployment == nil {
		deployment = find(made, "Deployment", "")
	}
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	must(t, err)
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	must(t, err)

	return args
}

// The notes warn about inputs that make Secrets readable.
func TestNotes(t *testing.T) {
	const warning = "WARNING: synthesis.inputs contains Secrets"
	for resource, want := range map[string]bool{"configmaps": false, "secrets": true, "*": true} {
		out := helm(t, slices.Concat([]string{"install", "arbor", cluster.Chart(), "--namespace", namespace, "--dry-run=client"},
			cluster.Set(only("synthesis", "synthesis.inputs[0].apiGroups[0]=", "synthesis.inputs[0].resources[0]="+resource)...))...)
		if strings.Contains(out, warning) != want {
			t.Errorf("%s: the warning is there: %t\n%s", resource, !want, out)
		}
	}
}

// Values that cannot work are rejected, in words that name them.
func TestBadValues(t *testing.T) {
	cases := map[string]struct {
		values []string
		want   []string
	}{
		"Replicas":       {[]string{"replicas=0"}, []string{"/replicas", "got 0, want 1"}},
		"ReplicasWord":   {[]string{"replicas=two"}, []string{"/replicas", "got string, want integer"}},
		"Unknown":        {[]string{"replica=2"}, []string{"additional properties 'replica' not allowed"}},
		"UnknownPart":    {[]string{"podgroup.enabled=true"}, []string{"additional properties 'podgroup' not allowed"}},
		"CRDs":           {[]string{"crds.manage=maybe"}, []string{"/crds/manage", "'manager', 'helm', 'none'"}},
		"Certificates":   {[]string{"webhooks.certificates=vault"}, []string{"/webhooks/certificates", "'arbor', 'cert-manager'"}},
		"Level":          {[]string{"log.level=loud"}, []string{"/log/level", "'debug', 'info', 'warn', 'error'"}},
		"Migration":      {[]string{"delivery.ownershipMigration=perhaps"}, []string{"/delivery/ownershipMigration", "'off', 'report', 'on'"}},
		"PruneGuard":     {[]string{"delivery.pruneGuard=half"}, []string{"/delivery/pruneGuard", "does not match pattern"}},
		"MaxFailures":    {[]string{"synthesis.rolloutMaxFailures=-1"}, []string{"/synthesis/rolloutMaxFailures", "got -1, want 0"}},
		"Inputs":         {[]string{"synthesis.inputNamespaces={*}"}, []string{"/synthesis/inputNamespaces/0", "does not match pattern"}},
		"PruneShare":     {[]string{"delivery.pruneGuard=101"}, []string{"/delivery/pruneGuard", "got 101, want 100"}},
		"Rule":           {[]string{"delivery.rules[0].apiGroups[0]=apps"}, []string{"/delivery/rules/0", "missing properties", "'resources'", "'verbs'"}},
		"Duration":       {[]string{"synthesis.timeout=30"}, []string{"got number, want string"}},
		"DurationWord":   {[]string{"synthesis.timeout=soon"}, []string{`synthesis.timeout "soon": it must be a duration, such as 30s`}},
		"HealthTimeout":  {[]string{"delivery.healthTimeout=soon"}, []string{`delivery.healthTimeout "soon": it must be a duration`}},
		"NegativeHealth": {[]string{"delivery.healthTimeout=-1m"}, []string{`delivery.healthTimeout "-1m": it must be a duration`}},
		"Lifetime":       {[]string{"webhooks.caLifetime=1y"}, []string{`webhooks.caLifetime "1y": it must be a duration`}},
		"PullTimeout":    {[]string{"synthesis.pods.imagePullTimeout=soon"}, []string{`synthesis.pods.imagePullTimeout "soon": it must be a duration`}},
		"Drain":          {[]string{"webhooks.drainSeconds=-1"}, []string{"/webhooks/drainSeconds", "got -1, want 0"}},
		"FailurePolicy":  {[]string{"webhooks.failurePolicy=ignore"}, []string{"/webhooks/failurePolicy", "'Fail', 'Ignore'"}},
		"HookTimeout":    {[]string{"webhooks.timeoutSeconds=31"}, []string{"/webhooks/timeoutSeconds", "got 31, want 30"}},
		"HookSelector":   {[]string{"webhooks.namespaceSelector.team=a"}, []string{"/webhooks/namespaceSelector", "additional properties 'team' not allowed"}},
		"Resources":      {[]string{"synthesis.pods.resources.memory=1Gi"}, []string{"/synthesis/pods/resources", "additional properties 'memory' not allowed"}},
		"NoImage":        {[]string{"image.repository="}, []string{"image.repository is empty: name the repository of the manager's image"}},
		"NoImageOfGangs": {gangs("scheduler.image.repository="), []string{"scheduler.image.repository is empty: name the repository of the scheduler's image"}},
		"ExtraEnv":       {[]string{"extraEnv[0].value=a"}, []string{"/extraEnv/0", "missing property 'name'"}},
		"Digest":         {[]string{"image.digest=latest"}, []string{`image.digest "latest": it must be sha256:`}},
		"Lease":          {[]string{"extraArgs[0]=--leader-election-id=one"}, []string{`extraArgs "--leader-election-id=one": the manager has permissions for the lease arbor-manager alone`}},
		"LocalPrograms":  {[]string{"extraArgs[0]=--local-synthesizers"}, []string{`extraArgs "--local-synthesizers": programs of Synthesizers would run with the manager's token within reach; set synthesis.pods.enabled`}},
		"Policies":       {[]string{"policies.action=Log"}, []string{"/policies/action", "'Warn', 'Deny'"}},
		"Aggregate":      {[]string{"rbac.aggregateTo=admin"}, []string{"/rbac/aggregateTo", "'none', 'view', 'edit'"}},
		"Cleanup":        {[]string{"extraArgs[0]=--namespace-cleanup"}, []string{`extraArgs "--namespace-cleanup": the manager would have no permissions for it; set synthesis.namespaceCleanup`}},
		"ExtraArgs":      {[]string{"extraArgs[0]=debug"}, []string{`extraArgs "debug": it must be a flag`}},
		"NoParts":        {[]string{"podgroups.enabled=false", "subnets.enabled=false"}, []string{"all components are disabled; enable at least one"}},
		"AdminAndRules":  {only("delivery", "delivery.clusterAdmin=true", "delivery.rules[0].apiGroups[0]=apps", "delivery.rules[0].resources[0]=deployments", "delivery.rules[0].verbs[0]=get"), []string{"delivery.clusterAdmin already grants all permissions; set one of the two"}},
		"FreeInputs":     {only("synthesis", "synthesis.inputNamespaces={shared}"), []string{"synthesis.inputNamespaces: it is for delivery.scope=namespace"}},
		"NoScope":        {only("delivery", "delivery.scope="), []string{"delivery.scope is empty: choose one.", "cluster: every author of a Composition or Synthesizer has all permissions that the manager has", "namespace: every Composition is delivered as a ServiceAccount of its own namespace"}},
		"Scope":          {only("delivery", "delivery.scope=all"), []string{"/delivery/scope", "'cluster', 'namespace'"}},
		"ScopeFlag":      {[]string{"extraArgs[0]=--delivery-scope=cluster"}, []string{`extraArgs "--delivery-scope=cluster": set delivery.scope`}},
		"Accounts":       {only("delivery", "delivery.defaultServiceAccount=a"), []string{"they are for delivery.scope=namespace"}},
		"TenantAdmin":    {tenants("delivery.clusterAdmin=true"), []string{"delivery.clusterAdmin: with delivery.scope=namespace, the manager has no permission to write"}},
		"TenantRules":    {tenants("delivery.rules[0].apiGroups[0]=", "delivery.rules[0].resources[0]=configmaps", "delivery.rules[0].verbs={list,watch,patch}"), []string{`delivery.rules[0].verbs "patch": with delivery.scope=namespace, the manager only watches`}},
		"OwnNamespace":   {tenants("delivery.tenantNamespaces={default}"), []string{`delivery.tenantNamespaces "default": it has ServiceAccounts of Arbor`}}, // that of the release
		"KubeNamespace":  {tenants("delivery.tenantNamespaces={kube-system}"), []string{`delivery.tenantNamespaces "kube-system": it has ServiceAccounts of Kubernetes`}},
		"RemoteTenants":  {tenants("delivery.tenantNamespaces={a}", "delivery.remoteKubeconfigSecret=x"), []string{"ServiceAccounts are those of that cluster"}},
		"ForbiddenGrace": {tenants("delivery.forbiddenGrace=soon"), []string{`delivery.forbiddenGrace "soon": it must be a duration`}},
		"PodsOff":        {[]string{"synthesis.pods.enabled=true"}, []string{"synthesis.pods.enabled: synthesis is disabled"}},
		"Minimums":       {gangs("scheduler.minimums=volcano"), []string{"/scheduler/minimums", "'arbor', 'kai'"}},
		"NoNames":        {gangs("scheduler.names=null"), []string{"scheduler.names: name at least one, such as arbor-scheduler"}},
		"Names":          {gangs("scheduler.names={a,a}"), []string{"/scheduler/names", "items at 0 and 1 are equal"}},
		"Grace":          {gangs("scheduler.staleGrace=soon"), []string{`scheduler.staleGrace "soon": it must be a duration`}},
		"BindTimeout":    {gangs("scheduler.bindTimeout=soon"), []string{`scheduler.bindTimeout "soon": it must be a duration`}},
		"Ratio":          {gangs("scheduler.maxEvictionRatio=-1"), []string{"/scheduler/maxEvictionRatio", "got -1, want 0"}},
		"RatioWord":      {gangs("scheduler.maxEvictionRatio=few"), []string{"/scheduler/maxEvictionRatio", "does not match pattern"}},
		"RatioFlag":      {gangs("scheduler.extraArgs[0]=--max-eviction-ratio=2"), []string{`scheduler.extraArgs "--max-eviction-ratio=2": set scheduler.maxEvictionRatio instead`}},
		"Guard":          {[]string{"podgroups.priorityClassGuard=some"}, []string{"/podgroups/priorityClassGuard", "'system', 'all', 'off'"}},
		"Verbosity":      {gangs("scheduler.log.verbosity=11"), []string{"/scheduler/log/verbosity", "got 11, want 10"}},
		"ImageDigest":    {gangs("scheduler.image.digest=latest"), []string{`scheduler.image.digest "latest": it must be sha256:`}},
		"ConfigAndNames": {gangs("scheduler.config=kind: KubeSchedulerConfiguration", "scheduler.names={mine}"), []string{"scheduler.names [mine]: scheduler.config has profiles, which have names of their own; set one of the two"}},
		"ConfigAndQPS":   {gangs("scheduler.config=kind: KubeSchedulerConfiguration", "scheduler.clientConnection.qps=20"), []string{"scheduler.clientConnection: the scheduler takes it from scheduler.config"}},
		"NoQPS":          {gangs("scheduler.clientConnection.qps=0"), []string{"/scheduler/clientConnection/qps", "got 0, want 1"}},
		"ConfigKind":     {gangs("scheduler.config=kind: Policy"), []string{`scheduler.config has the kind "Policy": it must be a KubeSchedulerConfiguration`}},
		"ConfigText":     {gangs("scheduler.config=: :"), []string{"scheduler.config cannot be read as YAML"}},
		"SchedulerLease": {gangs("scheduler.extraArgs[0]=--leader-elect=false"), []string{`scheduler.extraArgs "--leader-elect=false": the scheduler has permissions for the lease arbor-scheduler alone`}},
		"SchedulerName":  {gangs("scheduler.extraArgs[0]=--scheduler-name=a"), []string{`scheduler.extraArgs "--scheduler-name=a": set scheduler.names instead`}},
		"SchedulerFlag":  {gangs("scheduler.extraArgs[0]=v"), []string{`scheduler.extraArgs "v": it must be a flag`}},
		"NothingScraped": {[]string{"metrics.enabled=false", "metrics.serviceMonitor.enabled=true"}, []string{"metrics.serviceMonitor.enabled: there is nothing to scrape"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := tryHelm(t, slices.Concat([]string{"template", "arbor", cluster.Chart()}, cluster.Set(tc.values...))...)
			if err == nil {
				t.Fatalf("%q was taken:\n%s", tc.values, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in\n%v", want, err)
				}
			}
		})
	}
}

// Kustomize's base is the chart with its own values, without the fields that only Helm sets.
func TestKustomize(t *testing.T) {
	out, errs, code := server.Arbor(t, "kubectl", "kustomize", filepath.Join(cluster.Root(), "deploy", "kustomize"))
	if code != 0 {
		t.Fatal(errs)
	}
	plain := func(all []*unstructured.Unstructured) map[string]any {
		by := map[string]any{}
		for _, o := range all {
			labels := o.GetLabels()
			delete(labels, "app.kubernetes.io/managed-by")
			delete(labels, "helm.sh/chart")
			o.SetLabels(labels)
			by[o.GetKind()+"/"+o.GetName()] = o.Object
		}

		return by
	}
	base := plain(objects(t, out))
	if base["Namespace/"+namespace] == nil {
		t.Error("the base has no namespace")
	}
	delete(base, "Namespace/"+namespace)
	if diff := cmp.Diff(plain(render(t)), base); diff != "" {
		t.Errorf("run make generate: the base differs (-chart +base)\n%s", diff)
	}
}

// The registration that the chart makes for cert-manager is the one that the
// manager makes for itself, but for the trust.
func TestRegistrations(t *testing.T) {
	c := server.Client(t, nil)
	for name, values := range map[string][]string{
		"arbor-registered": nil,
		"arbor-chosen": {
			"webhooks.failurePolicy=Ignore", "webhooks.timeoutSeconds=3", "webhooks.namespaceSelector.matchLabels.team=a",
			"webhooks.namespaceSelector.matchExpressions[0].key=tier", "webhooks.namespaceSelector.matchExpressions[0].operator=NotIn", "webhooks.namespaceSelector.matchExpressions[0].values[0]=test",
			"webhooks.objectSelector.matchLabels.reviewed=yes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := install(t, c, name, values...)
			r.start(t)
			own := &unstructured.Unstructured{}
			own.SetAPIVersion("admissionregistration.k8s.io/v1")
			own.SetKind("ValidatingWebhookConfiguration")
			must(t, c.Get(t.Context(), client.ObjectKey{Name: r.name}, own))

			given := find(render(t, append(values, "webhooks.certificates=cert-manager")...), "ValidatingWebhookConfiguration", "")
			must(t, c.Create(t.Context(), given, client.DryRunAll)) // for the defaults
			if diff := cmp.Diff(contents(t, own), contents(t, given)); diff != "" {
				t.Errorf("-manager +chart\n%s", diff)
			}
		})
	}
}

func contents(t *testing.T, o *unstructured.Unstructured) []any {
	t.Helper()
	webhooks, found, err := unstructured.NestedSlice(o.Object, "webhooks")
	must(t, err)
	if !found {
		t.Fatalf("%s has no webhooks", o.GetName())
	}
	for _, w := range webhooks {
		// The one of a process is a URL.
		delete(w.(map[string]any), "clientConfig")
	}

	return webhooks
}

// The chart carries copies of files that are elsewhere too: the same.
func TestFiles(t *testing.T) {
	for from, to := range map[string]string{"api/crds": "crds", "monitoring/rules": "rules", "monitoring/dashboards": "dashboards"} {
		copies, err := os.ReadDir(filepath.Join(cluster.Chart(), "files", to))
		must(t, err)
		if len(copies) == 0 {
			t.Errorf("there are none of %s", from)
		}
		for _, f := range copies {
			want, err := os.ReadFile(filepath.Join(cluster.Root(), from, f.Name()))
			must(t, err)
			got, err := os.ReadFile(filepath.Join(cluster.Chart(), "files", to, f.Name()))
			must(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run make generate: %s/%s differs\n%s", to, f.Name(), diff)
			}
		}
	}
}

// foreign makes the kinds of others known to the API server that the chart can
// make objects of.
func foreign(t *testing.T, c client.Client) {
	t.Helper()
	for _, k := range [][3]string{{"cert-manager.io", "Issuer", "issuers"}, {"cert-manager.io", "Certificate", "certificates"}, {"monitoring.coreos.com", "ServiceMonitor", "servicemonitors"}, {"monitoring.coreos.com", "PrometheusRule", "prometheusrules"}} {
		group, kind, plural := k[0], k[1], k[2]
		crd := objects(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: `+plural+"."+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {kind: `+kind+`, plural: `+plural+`}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`)[0]
		if err := c.Create(t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		o := &unstructured.UnstructuredList{}
		o.SetAPIVersion(group + "/v1")
		o.SetKind(kind + "List")
		cluster.Eventually(t, kind+" is served", func() error { return c.List(t.Context(), o) })
	}
}
