{{- define "arbor.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "arbor" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-arbor" (.Release.Name | trunc 34 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "arbor.manager" -}}{{ include "arbor.fullname" . }}-manager{{- end -}}
{{- define "arbor.webhook" -}}{{ include "arbor.fullname" . }}-webhook{{- end -}}
{{- define "arbor.scheduler" -}}{{ include "arbor.fullname" . }}-scheduler{{- end -}}

{{- define "arbor.selector" -}}
app.kubernetes.io/name: arbor
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end -}}

{{- define "arbor.schedulerSelector" -}}
app.kubernetes.io/name: arbor
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "arbor.labels" -}}
app.kubernetes.io/name: arbor
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The enabled components, as the value of --controllers. */}}
{{- define "arbor.parts" -}}
{{- $on := list -}}
{{- range $part := list "podgroups" "subnets" "synthesis" "delivery" -}}
{{- if (index $.Values $part).enabled }}{{ $on = append $on $part }}{{ end -}}
{{- end -}}
{{- join "," $on -}}
{{- end -}}

{{/* The CRDs of the enabled components. */}}
{{- define "arbor.definitions" -}}
{{- $all := list -}}
{{- if .Values.podgroups.enabled }}{{ $all = append $all "podgroups.scheduling.run.ai" }}{{ end -}}
{{- if .Values.subnets.enabled }}{{ $all = concat $all (list "subnetclaims.plexaubnet.io" "subnetpoolclaims.plexaubnet.io" "subnetpools.plexaubnet.io" "subnets.plexaubnet.io") }}{{ end -}}
{{- if or .Values.synthesis.enabled .Values.delivery.enabled }}{{ $all = concat $all (list "compositions.eno.azure.io" "resourceslices.eno.azure.io") }}{{ end -}}
{{- if .Values.synthesis.enabled }}{{ $all = concat $all (list "symphonies.eno.azure.io" "synthesizers.eno.azure.io") }}{{ end -}}
{{- join "," $all -}}
{{- end -}}

{{/* Whether webhooks are served: synthesis and delivery have none. "" is no. */}}
{{- define "arbor.serves" -}}
{{- if and .Values.webhooks.enabled (or .Values.podgroups.enabled .Values.subnets.enabled) }}yes{{ end -}}
{{- end -}}
{{- define "arbor.ownCertificates" -}}
{{- if and (include "arbor.serves" .) (eq .Values.webhooks.certificates "arbor") }}yes{{ end -}}
{{- end -}}
{{- define "arbor.certManager" -}}
{{- if and (include "arbor.serves" .) (eq .Values.webhooks.certificates "cert-manager") }}yes{{ end -}}
{{- end -}}

{{- define "arbor.image" -}}{{ include "arbor.reference" (dict "image" .Values.image "root" .) }}{{- end -}}
{{- define "arbor.reference" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "arbor.ownPodsNamespace" -}}{{ printf "%s-synthesizers" (.Release.Namespace | trunc 50 | trimSuffix "-") }}{{- end -}}
{{- define "arbor.podsNamespace" -}}{{ .Values.synthesis.pods.namespace | default (include "arbor.ownPodsNamespace" .) }}{{- end -}}
{{- define "arbor.podsServiceAccount" -}}{{ .Values.synthesis.pods.serviceAccount | default (printf "%s-synthesizer" (include "arbor.fullname" .)) }}{{- end -}}

{{/* Quantities of resources, as values of flags: cpu=10m,memory=32Mi. */}}
{{- define "arbor.quantities" -}}
{{- $all := list -}}
{{- range $name, $quantity := . }}{{ $all = append $all (printf "%s=%v" $name $quantity) }}{{ end -}}
{{- join "," $all -}}
{{- end -}}

{{/* The same of "own", with the quantities of "default" whose names are neither in "own" nor in "other". A default limit
     next to a request of the user, or the other way round, could be the smaller one. "" if "own" is null. */}}
{{- define "arbor.quantitiesOr" -}}
{{- if not (kindIs "invalid" .own) -}}
{{- $all := dict -}}
{{- range $name, $quantity := .default }}{{ if not (hasKey ($.other | default dict) $name) }}{{ $_ := set $all $name $quantity }}{{ end }}{{ end -}}
{{- include "arbor.quantities" (merge (dict) .own $all) -}}
{{- end -}}
{{- end -}}

{{/* The environment of a program: its memory limit, from which it sets the limit of Go's garbage collector, and what the
     user adds. "" if there is none. */}}
{{- define "arbor.env" -}}
{{- $limits := (.resources | default dict).limits | default dict -}}
{{- if or $limits.memory .extra -}}
env:
  {{- if $limits.memory }}
  - name: ARBOR_MEMORY_LIMIT
    valueFrom:
      resourceFieldRef: {resource: limits.memory}
  {{- end }}
  {{- with .extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Checks that a schema cannot express: values that exclude each other. */}}
{{- define "arbor.validate" -}}
{{- range $name, $value := dict "synthesis.timeout" .Values.synthesis.timeout "synthesis.pods.imagePullTimeout" .Values.synthesis.pods.imagePullTimeout "synthesis.rolloutCooldown" .Values.synthesis.rolloutCooldown "webhooks.caLifetime" .Values.webhooks.caLifetime "metrics.serviceMonitor.interval" .Values.metrics.serviceMonitor.interval "delivery.healthTimeout" .Values.delivery.healthTimeout "delivery.forbiddenGrace" .Values.delivery.forbiddenGrace "scheduler.staleGrace" .Values.scheduler.staleGrace "scheduler.bindTimeout" .Values.scheduler.bindTimeout -}}
{{- if not (regexMatch "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$" $value) }}{{ fail (printf "%s %q: it must be a duration, such as 30s or 8760h" $name $value) }}{{ end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if not (hasPrefix "--" .) }}{{ fail (printf "extraArgs %q: it must be a flag, such as --log-level=debug" .) }}{{ end -}}
{{- if hasPrefix "--leader-election-id" . }}{{ fail (printf "extraArgs %q: the manager has permissions for the lease arbor-manager alone; install a second release in a namespace of its own instead" .) }}{{ end -}}
{{- if hasPrefix "--local-synthesizers" . }}{{ fail (printf "extraArgs %q: programs of Synthesizers would run with the manager's token within reach; set synthesis.pods.enabled" .) }}{{ end -}}
{{- if hasPrefix "--delivery-scope" . }}{{ fail (printf "extraArgs %q: set delivery.scope, which permissions depend on" .) }}{{ end -}}
{{- if hasPrefix "--namespace-cleanup" . }}{{ fail (printf "extraArgs %q: the manager would have no permissions for it; set synthesis.namespaceCleanup" .) }}{{ end -}}
{{- end -}}
{{- range $name, $image := dict "image" .Values.image "scheduler.image" .Values.scheduler.image -}}
{{- if and $image.digest (not (regexMatch "^sha256:[0-9a-f]{64}$" $image.digest)) }}{{ fail (printf "%s.digest %q: it must be sha256: and 64 hexadecimal digits" $name $image.digest) }}{{ end -}}
{{- end -}}
{{- if not .Values.image.repository }}{{ fail "image.repository is empty: name the repository of the manager's image, such as registry.example.com/arbor-manager; make image builds the image" }}{{ end -}}
{{- if not (include "arbor.parts" .) }}{{ fail "podgroups.enabled, subnets.enabled, synthesis.enabled, delivery.enabled: all components are disabled; enable at least one" }}{{ end -}}
{{- if .Values.delivery.enabled }}{{ include "arbor.validateScope" . }}{{ end -}}
{{- if and .Values.synthesis.inputNamespaces (ne .Values.delivery.scope "namespace") }}{{ fail "synthesis.inputNamespaces: it is for delivery.scope=namespace; otherwise Compositions may bind inputs of all namespaces" }}{{ end -}}
{{- if and .Values.delivery.clusterAdmin .Values.delivery.rules }}{{ fail "delivery.rules: delivery.clusterAdmin already grants all permissions; set one of the two" }}{{ end -}}
{{- if and .Values.synthesis.pods.enabled (not .Values.synthesis.enabled) }}{{ fail "synthesis.pods.enabled: synthesis is disabled; set synthesis.enabled too" }}{{ end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) }}{{ fail "metrics.serviceMonitor.enabled: there is nothing to scrape; set metrics.enabled too" }}{{ end -}}
{{- if and .Values.scheduler.enabled (not (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version)) }}{{ fail (printf "scheduler.enabled: the scheduler needs Kubernetes 1.36 or later, and the cluster has %s; upgrade the cluster or set scheduler.enabled to false (helm template: name the version of the cluster with --kube-version)" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- if .Values.scheduler.enabled }}{{ include "arbor.validateScheduler" .Values.scheduler }}{{ end -}}
{{- end -}}

{{/* The permissions of the manager depend on the scope. */}}
{{- define "arbor.validateScope" -}}
{{- $d := .Values.delivery -}}
{{- if not $d.scope }}{{ fail "delivery.scope is empty: choose one. cluster: every author of a Composition or Synthesizer has all permissions that the manager has (delivery.rules), as with Eno. namespace: every Composition is delivered as a ServiceAccount of its own namespace, which you must name (spec.serviceAccountName or delivery.defaultServiceAccount) and which the manager must be allowed to impersonate (delivery.tenantNamespaces)" }}{{ end -}}
{{- if eq $d.scope "cluster" -}}
{{- if or $d.tenantNamespaces $d.defaultServiceAccount }}{{ fail "delivery.tenantNamespaces, delivery.defaultServiceAccount: they are for delivery.scope=namespace; with cluster, the manager writes as itself" }}{{ end -}}
{{- else -}}
{{- if $d.clusterAdmin }}{{ fail "delivery.clusterAdmin: with delivery.scope=namespace, the manager has no permission to write; give permissions to the ServiceAccounts of tenants" }}{{ end -}}
{{- range $i, $rule := $d.rules }}{{ range $rule.verbs -}}
{{- if not (has . (list "list" "watch")) }}{{ fail (printf "delivery.rules[%d].verbs %q: with delivery.scope=namespace, the manager only watches: list, watch; give other permissions to the ServiceAccounts of tenants" $i .) }}{{ end -}}
{{- end }}{{ end -}}
{{- range $d.tenantNamespaces -}}
{{- if or (eq . $.Release.Namespace) (eq . (include "arbor.podsNamespace" $)) }}{{ fail (printf "delivery.tenantNamespaces %q: it has ServiceAccounts of Arbor, and Compositions in it could use them" .) }}{{ end -}}
{{- if hasPrefix "kube-" . }}{{ fail (printf "delivery.tenantNamespaces %q: it has ServiceAccounts of Kubernetes, and Compositions in it could use them" .) }}{{ end -}}
{{- end -}}
{{- if and $d.remoteKubeconfigSecret $d.tenantNamespaces }}{{ fail "delivery.tenantNamespaces: with delivery.remoteKubeconfigSecret, ServiceAccounts are those of that cluster; give the user of that kubeconfig permission to impersonate them there" }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "arbor.validateScheduler" -}}
{{- if not .image.repository }}{{ fail "scheduler.image.repository is empty: name the repository of the scheduler's image, such as registry.example.com/arbor-scheduler; make image builds the image" }}{{ end -}}
{{- if not .names }}{{ fail "scheduler.names: name at least one, such as arbor-scheduler" }}{{ end -}}
{{- range .extraArgs -}}
{{- if not (hasPrefix "--" .) }}{{ fail (printf "scheduler.extraArgs %q: it must be a flag, such as --profiling=false" .) }}{{ end -}}
{{- if hasPrefix "--leader-elect" . }}{{ fail (printf "scheduler.extraArgs %q: the scheduler has permissions for the lease arbor-scheduler alone, and always asks for it" .) }}{{ end -}}
{{- $given := . -}}
{{- range $flag, $value := dict "--scheduler-name" "names" "--config" "config" "--minimums" "minimums" "--stale-grace" "staleGrace" "--gang-preemption" "preemption" "--respect-pdb" "respectPDB" "--max-eviction-ratio" "maxEvictionRatio" "--bind-timeout" "bindTimeout" -}}
{{- if eq $flag (splitList "=" $given | first) }}{{ fail (printf "scheduler.extraArgs %q: set scheduler.%s instead" $given $value) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if .config -}}
{{- $config := fromYaml .config -}}
{{- if $config.Error }}{{ fail (printf "scheduler.config cannot be read as YAML: %s" $config.Error) }}{{ end -}}
{{- if ne (toString $config.kind) "KubeSchedulerConfiguration" }}{{ fail (printf "scheduler.config has the kind %q: it must be a KubeSchedulerConfiguration, as text" (toString (default "" $config.kind))) }}{{ end -}}
{{- if ne (join "," .names) "arbor-scheduler" }}{{ fail (printf "scheduler.names [%s]: scheduler.config has profiles, which have names of their own; set one of the two" (join " " .names)) }}{{ end -}}
{{- if or (ne (int .clientConnection.qps) 500) (ne (int .clientConnection.burst) 1000) }}{{ fail "scheduler.clientConnection: the scheduler takes it from scheduler.config; set clientConnection there" }}{{ end -}}
{{- end -}}
{{- end -}}
