package clusterdump

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

//nolint:gosec // these are words, and nobody's credentials
const secretive = `
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: ns
  uid: u
  labels: {a: b}
  annotations: {pod-group-name: g, kubectl.kubernetes.io/last-applied-configuration: secret, volume.kubernetes.io/x: kept}
  managedFields: [{manager: secret}]
  ownerReferences: [{kind: Job, name: j}]
spec:
  nodeName: n
  serviceAccountName: secret
  imagePullSecrets: [{name: secret}]
  hostAliases: [{ip: secret}]
  initContainers: [{name: i, image: x, restartPolicy: Always, command: [secret]}]
  containers:
  - name: c
    image: y
    args: [secret]
    env: [{name: TOKEN, value: secret}]
    envFrom: [{secretRef: {name: secret}}]
    livenessProbe: {httpGet: {path: /secret}}
    ports: [{containerPort: 80, hostPort: 81, name: secret}]
    resources: {requests: {cpu: 1}}
  volumes:
  - {name: v1, secret: {secretName: secret}}
  - {name: v2, persistentVolumeClaim: {claimName: claim}}
  - {name: v3, csi: {driver: d, volumeAttributes: {password: secret}, nodePublishSecretRef: {name: secret}}}
  - {name: v4, hostPath: {path: /secret}}
status:
  phase: Running
  conditions: [{type: PodScheduled, status: "True", message: secret}]
  containerStatuses: [{name: c, imageID: secret, resources: {requests: {cpu: 1}}}]
`

func TestTrim(t *testing.T) {
	const want = `
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: ns
  uid: u
  labels: {a: b}
  annotations: {pod-group-name: g, volume.kubernetes.io/x: kept}
  ownerReferences: [{kind: Job, name: j}]
spec:
  nodeName: n
  initContainers: [{name: i, image: x, restartPolicy: Always}]
  containers:
  - {name: c, image: y, ports: [{containerPort: 80, hostPort: 81}], resources: {requests: {cpu: 1}}}
  volumes:
  - {name: v1, emptyDir: {}}
  - {name: v2, persistentVolumeClaim: {claimName: claim}}
  - {name: v3, csi: {driver: d}}
  - {name: v4, emptyDir: {}}
status:
  phase: Running
  conditions: [{type: PodScheduled, status: "True"}]
  containerStatuses: [{name: c, resources: {requests: {cpu: 1}}}]
`
	got := Trim(parsed(t, secretive))
	if diff := cmp.Diff(parsed(t, want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, text := range map[string]string{
		"PersistentVolume": "{kind: PersistentVolume, spec: {csi: {driver: d, volumeHandle: h, volumeAttributes: {a: secret}, nodeStageSecretRef: {name: secret}}, mountOptions: [secret]}}",
		"StorageClass":     "{kind: StorageClass, provisioner: p, parameters: {a: secret}}",
		"StatefulSet":      "{kind: StatefulSet, spec: {selector: {}, template: {spec: {containers: [{env: [{value: secret}]}]}}}}",
		"Node":             "{kind: Node, metadata: {annotations: {a: secret}}, spec: {providerID: secret}, status: {addresses: [{address: secret}], nodeInfo: {machineID: secret}}}",
		"Unknown":          "{kind: Secret, data: {a: secret}, stringData: {a: secret}}",
		"ResourceClaim":    "{kind: ResourceClaim, spec: {devices: {config: [{opaque: {parameters: {a: secret}}}]}}, status: {allocation: {devices: {config: [{opaque: secret}]}}, devices: [{data: secret}]}}",
	} {
		out, err := yaml.Marshal(Trim(parsed(t, text)))
		if err != nil || strings.Contains(string(out), "secret") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}

	return object
}
