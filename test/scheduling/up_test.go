package scheduling_test

import (
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

// In `arbor up`, it is the scheduler: whomever pods ask for, those of a group go
// together.
func TestInPlaceOfKubeScheduler(t *testing.T) {
	up, err := cluster.Start(t.TempDir(), "--unsafe-no-fsync", "--nodes=1", "--controllers=podgroups")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		up.Stop()
		if t.Failed() {
			up.DumpLogs()
		}
	})
	if _, err := up.Child("kube-scheduler"); err == nil {
		t.Error("there is a kube-scheduler too")
	}
	l := newLabOn(t, up, 1, 8)
	for _, name := range []string{"default-scheduler", sharedName, "kai-scheduler"} {
		l.name = name
		l.group(name, simple(2))
		l.pods(name, "", 1, 1)
		l.waits(name, "1 of min 2 pods")
		l.create(l.pod(name, "", name+"-last", 1))
		l.runs(name, 2)
	}
	l.takesAll(2)
}
