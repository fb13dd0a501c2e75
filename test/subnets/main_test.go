// Package subnets_test tests subnet pools on a real API server.
package subnets_test

import (
	"os"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
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
	must(t, cluster.Define(t.Context(), c, v1alpha1.GroupVersion, v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind, v1alpha1.SubnetClaimKind, v1alpha1.SubnetPoolClaimKind))
	// The API server notices that a little later.
	cluster.Eventually(t, "no webhook is called", func() error {
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
