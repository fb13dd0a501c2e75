package subnets_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/test/cluster"
)

// arbor runs the command line and expects an exit code.
func arbor(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, errs, got := server.Arbor(t, args...)
	if got != code {
		t.Fatalf("arbor %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}

	return out + errs
}

func says(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q:\n%s", w, text)
		}
	}
}

// awaitSound waits until nothing is wrong with the pools of a namespace: what is
// said of them is written a little later than what it is about.
func awaitSound(t *testing.T, ns, want string) {
	t.Helper()
	cluster.Eventually(t, "nothing is wrong", func() error {
		out, errs, code := server.Arbor(t, "pools", "check", "-n", ns)
		if code != 0 || !strings.Contains(errs, want) {
			return fmt.Errorf("exit code %d: %s%s", code, out, errs)
		}

		return nil
	})
}

// The examples do what they say, and the commands show what is there.
func TestCommandLine(t *testing.T) {
	c := newClient(t)
	m := startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	example := func(name string) []string {
		return []string{"kubectl", "apply", "-f", filepath.Join(cluster.Root(), "examples", name)}
	}
	// Admission compares with the cache, so the first pool must be there: of two pools that
	// come at one moment both are admitted, and only one is opened.
	must(t, c.Create(t.Context(), newPool("default", "plant", "10.64.0.0/16")))
	awaitStatus(t, c, newPool("default", "plant", ""), 0, nil)
	says(t, arbor(t, 1, example("subnet-overlapping.yaml")...),
		"10.64.128.0/17 overlaps 10.64.0.0/16 of pool plant, which is a root pool of this namespace too", "Warning: spec.cidr: choose other addresses")
	arbor(t, 0, example("subnet-pool.yaml")...)
	for name, cidr := range map[string]string{"cluster-a": "", "cluster-b": "10.32.200.0/24", "lab": ""} {
		claim := newClaim("default", name, 0)
		awaitClaim(t, c, claim, v1alpha1.ClaimBound, "Allocated")
		if cidr != "" && claim.Status.AllocatedCIDR != cidr {
			t.Errorf("%s got %s", name, claim.Status.AllocatedCIDR)
		}
	}
	// The block of the lab is there before its pool is.
	awaitStatus(t, c, newPool("default", "lab", ""), 0, nil)
	awaitStatus(t, c, newPool("default", "campus", ""), 2, nil)

	says(t, arbor(t, 0, "pools", "-n", "default"), "campus", "10.32.0.0/16", "lab", "2 Subnets, 1 child pool")
	says(t, arbor(t, 0, "pools", "show", "campus", "-n", "default"), "cluster-b", "child pool", "free")
	awaitSound(t, "default", "nothing wrong")

	// What is planned is what is handed out.
	must(t, c.Create(t.Context(), newPool(ns, "p", "10.0.0.0/16")))
	plan := arbor(t, 0, "pools", "plan", "-n", ns, "--pool", "p", "--size", "26", "--count", "3")
	for _, name := range []string{"x", "y", "z"} {
		claim := newClaim(ns, name, 26)
		must(t, c.Create(t.Context(), claim))
		awaitClaim(t, c, claim, v1alpha1.ClaimBound, "Allocated")
		says(t, plan, claim.Status.AllocatedCIDR+" ", claim.Status.SubnetRef)
	}
	awaitStatus(t, c, newPool(ns, "p", ""), 3, nil)
	awaitSound(t, ns, "nothing wrong")

	// What is wrong is found, by check and by audit.
	m.Kill()
	p := newPool(ns, "p", "")
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	p.Status.AllocatedCount = 7
	must(t, c.Status().Update(t.Context(), p))
	orphan := newSubnet(ns, "orphan", "10.0.9.0/24")
	orphan.Spec.ClaimRef = &v1alpha1.ClaimReference{Name: "gone", UID: "gone"}
	must(t, c.Create(t.Context(), orphan))
	over := newSubnet(ns, "over", "10.0.0.0/25")
	over.Spec.ClaimRef = orphan.Spec.ClaimRef
	must(t, c.Create(t.Context(), over))
	over.Status.Phase = v1alpha1.SubnetAllocated
	must(t, c.Status().Update(t.Context(), over))
	for _, command := range [][]string{{"pools", "check", "-n", ns}, {"audit", "-n", ns}} {
		says(t, arbor(t, 1, command...), "10.0.0.0/25", "Overlap", "ClaimNotFound", "orphan", "over")
	}
	must(t, c.Delete(t.Context(), over))
	says(t, arbor(t, 1, "pools", "check", "-n", ns), "StatusDiffers", "allocatedCount is 4, not 7")
}
