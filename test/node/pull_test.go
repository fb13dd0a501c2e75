package node_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/arbor-control/arbor/test/node/registry"
	"github.com/arbor-control/arbor/tools/release/oci"
)

// serve starts a registry and returns its host.
func serve(t *testing.T, r *registry.Registry) string {
	t.Helper()
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)

	return strings.TrimPrefix(s.URL, "http://")
}

// noNetwork: a pod that gets no network is reported with the cause that the kubelet reports, and
// not as a slow pull. containerd does not create the sandbox of a pod whose bandwidth is no quantity.
func noNetwork(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.annotations = map[string]string{"kubernetes.io/ingress-bandwidth": "none"}
	s.compose(testImage, "/program", "synthesize", s.namespace, output)
	s.fails("It has no network.", "the sandbox of the pod, with its network, was not created within 30s (--image-pull-timeout): FailedCreatePodSandBox", "bandwidth")
}

// slowPull: the time that the node needs to pull an image is not part of the time of a synthesis.
func slowPull(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	// The node has every layer of the other images already.
	archive, err := images.Write("slow", "1", "65532:65532", oci.File{Path: "/slow", Data: []byte(t.Name())})
	must(t, err)
	const timeout = 10 * time.Second // values.yaml
	r, err := registry.Open(archive)
	must(t, err)
	r.Delay = timeout + 4*time.Second
	host := serve(t, r)
	began := time.Now()
	s.compose(host+"/slow:1", "/program", "synthesize", s.namespace, output, "color=red")
	c, data := s.ready()
	if n := c.Status.CurrentSynthesis.Attempts; n != 1 || data["color"] != "red" {
		t.Errorf("it took %d attempts, want 1; the data is %v", n, data)
	}
	if took := time.Since(began); r.Layers.Load() == 0 || took < r.Delay {
		t.Errorf("%d layers were pulled, within %s: nothing was slow", r.Layers.Load(), took)
	}
}
