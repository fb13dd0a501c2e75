package scheduling_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

// A pupil does what docs/start/gang-tutorial.md describes.
type pupil struct {
	*testing.T

	up *cluster.Up
}

// runs has a command run, which exits with a code, and expects to read texts.
func (p *pupil) runs(code int, command string, texts ...string) {
	p.Helper()
	out, errs, got := p.up.Arbor(p.T, strings.Fields(command)...)
	if got != code {
		p.Fatalf("arbor %s: exit code %d, want %d\n%s%s", command, got, code, out, errs)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			p.Errorf("arbor %s does not contain %q:\n%s%s", command, text, out, errs)
		}
	}
}

// eventually is runs for what takes a moment.
func (p *pupil) eventually(command string, texts ...string) {
	p.Helper()
	cluster.Eventually(p, "arbor "+command, func() error {
		out, errs, _ := p.up.Arbor(p.T, strings.Fields(command)...)
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return fmt.Errorf("it does not contain %q:\n%s%s", text, out, errs)
			}
		}

		return nil
	})
}

func TestTutorial(t *testing.T) {
	up, err := cluster.Start(t.TempDir(), "--unsafe-no-fsync", "--nodes=4", "--node-gpus=8", "--controllers=podgroups")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		up.Stop()
		if t.Failed() {
			up.DumpLogs()
		}
	})
	p := &pupil{t, up}
	root := cluster.Root()
	inference, urgent := root+"/examples/gang-inference.yaml", root+"/examples/gang-urgent.yaml"
	scheduled := func(name string) string {
		return "kubectl wait --timeout=240s --for=condition=Scheduled podgroup/" + name
	}
	const placed = "kubectl get podgroups -o jsonpath={range.items[*]}{.metadata.name}={.status.placed};{end}"

	p.runs(0, "groups fit -f "+inference, "PodGroup default/inference fits: 7 of 10 pods get a place", "left out")
	p.runs(0, "kubectl apply -f "+inference)
	p.runs(0, scheduled("inference"))
	p.eventually(placed, "inference=7;")
	p.runs(1, "groups fit -f "+urgent, "PodGroup default/urgent does not fit: room for 2 of min 4 pods")

	p.runs(0, "kubectl apply -f "+urgent)
	p.runs(0, scheduled("urgent"))
	p.eventually(placed, "inference=0;", "urgent=4;")
	p.eventually("groups explain inference", "PodGroup default/inference waits: only 1 of min 2 subgroups of \"decode\" fit", "arbor-node-4")

	p.runs(0, "kubectl delete -f "+urgent)
	p.runs(0, scheduled("inference"))
	p.eventually(placed, "inference=7;")

	p.runs(0, "kubectl label pod -l app=router kai.scheduler/subgroup-name=ruoter --overwrite")
	p.eventually("kubectl get podgroup inference -o jsonpath={.status.conditions}", `names the subgroup \"ruoter\", which PodGroup \"inference\" does not have`)
	p.runs(0, "kubectl label pod -l app=router kai.scheduler/subgroup-name=router --overwrite")
	p.runs(0, scheduled("inference"))
}
