package clusterdump

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/manifest"
)

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
	got := Trim(parsed(t, secretive(t)))
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
	f := manifest.Parse("a.yaml", []byte(text))
	if len(f.Errors) > 0 || len(f.Documents) != 1 {
		t.Fatal(f)
	}

	return f.Documents[0].Object
}

// secretive is a pod with all that a dump must not have.
func secretive(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/secretive.yaml")
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
