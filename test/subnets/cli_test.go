package subnets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// tryIt does what "Try it" of docs/concepts/subnets.md says, and compares what the commands
// print. Only the age of objects may differ.
func tryIt(t *testing.T, c client.Client) {
	t.Helper()
	for i, step := range documented(t, filepath.Join("docs", "concepts", "subnets.md"), "## Try it") {
		args := strings.Fields(step.command)
		if i == 0 {
			args = append([]string{"arbor"}, args...)
			args[len(args)-1] = filepath.Join(cluster.Root(), args[len(args)-1])
		}
		cluster.Eventually(t, step.command+" prints what the documentation shows", func() error {
			out, errs, code := server.Arbor(t, args[1:]...)
			if diff := cmp.Diff(step.output, ages.ReplaceAllString(out+errs, "AGE")); code != 0 || diff != "" {
				if i == 0 {
					t.Fatalf("exit code %d (-docs +got):\n%s", code, diff)
				}

				return fmt.Errorf("exit code %d (-docs +got):\n%s", code, diff)
			}

			return nil
		})
	}
	for name, cidr := range map[string]string{"cluster-a": "10.32.0.0/24", "cluster-b": "10.32.200.0/24", "lab": "10.32.16.0/20"} {
		claim := newClaim("default", name, 0)
		awaitClaim(t, c, claim, v1alpha1.ClaimBound, "Allocated")
		if claim.Status.AllocatedCIDR != cidr {
			t.Errorf("%s got %s, want %s", name, claim.Status.AllocatedCIDR, cidr)
		}
	}
	awaitStatus(t, c, newPool("default", "lab", ""), 0, nil)
	awaitStatus(t, c, newPool("default", "campus", ""), 2, nil)
}

// ages are those of objects, at the end of a line.
var ages = regexp.MustCompile(`(?m)\b[0-9]+[dhms][0-9dhms]*$`)

// A documentedStep is a command and what it prints, with AGE in place of ages.
type documentedStep struct{ command, output string }

// documented returns the steps of the first console block below a heading.
func documented(t *testing.T, file, heading string) []documentedStep {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Root(), file))
	must(t, err)
	_, below, ok := strings.Cut(string(text), heading+"\n")
	_, block, is := strings.Cut(below, "```console\n")
	block, _, ends := strings.Cut(block, "```")
	if !ok || !is || !ends {
		t.Fatalf("%s has no console block below %q", file, heading)
	}
	var steps []documentedStep
	for part := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
		command, output, _ := strings.Cut(part, "\n")
		steps = append(steps, documentedStep{command, ages.ReplaceAllString(strings.TrimSuffix(output, "\n")+"\n", "AGE")})
	}

	return steps
}

// The examples do what they say, and the commands show what is there.
func TestCommandLine(t *testing.T) {
	c := newClient(t)
	m := startAdmission(t, c)
	ns := cluster.Namespace(t, c)
	example := func(name string) []string {
		return []string{"kubectl", "apply", "-f", filepath.Join(cluster.Root(), "examples", name)}
	}
	tryIt(t, c)
	// Admission compares with the cache, so the first pool must be there: of two pools that
	// come at one moment both are admitted, and only one is opened.
	must(t, c.Create(t.Context(), newPool("default", "plant", "10.64.0.0/16")))
	awaitStatus(t, c, newPool("default", "plant", ""), 0, nil)
	says(t, arbor(t, 1, example("subnet-overlapping.yaml")...),
		"10.64.128.0/17 overlaps 10.64.0.0/16 of pool plant, which is a root pool of this namespace too", "Warning: spec.cidr: choose other addresses")
	says(t, arbor(t, 2, "pools", "export", "-n", "no-such-net"), `namespace "no-such-net" was not found in the cluster`)
	says(t, arbor(t, 0, "pools", "export", "-n", ns), "No pools, Subnets or claims found in "+ns+" namespace.")
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
