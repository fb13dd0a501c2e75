package chart_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// A Subnet in use is deleted by the manager only, also with webhooks off, and the deletion
// of its namespace is not held up.
func TestDeletionProtection(t *testing.T) {
	c := server.Client(t, nil)
	purge(t, c)
	r := install(t, c, "arbor-protected", only("subnets", "webhooks.enabled=false", "crds.manage=helm")...)
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + r.name + ":" + r.name + "-manager"}
	manager, err := client.New(config, client.Options{Scheme: c.Scheme()})
	must(t, err)

	namespace := cluster.Namespace(t, c)
	made := func(name string, change func(*v1alpha1.Subnet)) *v1alpha1.Subnet {
		s := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.SubnetSpec{PoolRef: "p", CIDR: "10.0.0.0/24", ClusterID: name}}
		change(s)
		status := s.Status
		must(t, c.Create(t.Context(), s))
		if s.Status = status; status.Phase != "" {
			must(t, c.Status().Update(t.Context(), s))
		}

		return s
	}
	claimed := made("claimed", func(s *v1alpha1.Subnet) {
		s.Spec.ClaimRef, s.Status.Phase = &v1alpha1.ClaimReference{Name: "team"}, v1alpha1.SubnetAllocated
	})
	backing := made("backing", func(s *v1alpha1.Subnet) {
		s.Spec.Backs, s.Status.Phase = &v1alpha1.PoolReference{Name: "lab"}, v1alpha1.SubnetAllocated
	})
	unjudged := made("unjudged", func(s *v1alpha1.Subnet) { s.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "team"} })
	failed := made("failed", func(s *v1alpha1.Subnet) {
		s.Spec.ClaimRef, s.Status.Phase = &v1alpha1.ClaimReference{Name: "team"}, v1alpha1.SubnetFailed
	})
	free := made("free", func(*v1alpha1.Subnet) {})

	refused := map[*v1alpha1.Subnet]string{
		claimed: "Subnet claimed holds the block of SubnetClaim team: delete the claim",
		backing: "Subnet backing holds the block of SubnetPool lab: delete that pool",
	}
	// The API server reads policies some time after they were made.
	cluster.Eventually(t, "Subnets in use are protected", func() error {
		for s, message := range refused {
			if err := c.Delete(t.Context(), s, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), message) {
				return errors.Join(errors.New("an administrator may delete "+s.Name), err)
			}
		}

		return nil
	})
	for _, s := range []*v1alpha1.Subnet{failed, free, unjudged} {
		must(t, c.Delete(t.Context(), s, client.DryRunAll))
	}
	for s := range refused {
		// Nor does it know at once what the manager may do.
		cluster.Eventually(t, "the manager may delete "+s.Name, func() error { return manager.Delete(t.Context(), s, client.DryRunAll) })
	}
	must(t, c.Delete(t.Context(), namespaceObject(namespace, "")))
	cluster.Eventually(t, "the namespace is gone", func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(claimed), claimed)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(errors.New("the Subnet is still there"), err)
	})
}
