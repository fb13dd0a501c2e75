// Package subnets_test shows the address API at work on a real API server.
package subnets_test

import (
	"os"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

// newClient returns a client of a cluster that serves the address API, and that
// no manager of another test admits to.
func newClient(t *testing.T) client.Client {
	t.Helper()
	c := server.Client(t, nil)
	must(t, client.IgnoreNotFound(c.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "arbor"}})))
	for _, kind := range []string{v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind, v1alpha1.SubnetClaimKind, v1alpha1.SubnetPoolClaimKind} {
		crd, ok := crds.ByKind(v1alpha1.GroupVersion.Group, kind)
		if !ok {
			t.Fatalf("there is no definition of %s", kind)
		}
		must(t, kube.EnsureCRD(t.Context(), c, crd, true))
	}
	// The API server notices either a little later.
	cluster.Eventually(t, "everything is served, and nobody is asked", func() error {
		for _, list := range []client.ObjectList{&v1alpha1.SubnetList{}, &v1alpha1.SubnetClaimList{}, &v1alpha1.SubnetPoolClaimList{}} {
			if err := c.List(t.Context(), list, client.InNamespace("default")); err != nil {
				return err
			}
		}

		return c.Create(t.Context(), newPool("default", "probe", "10.0.0.0/8"), client.DryRunAll)
	})

	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
