package synthesis_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
)

// runs returns the uuids of all syntheses that a program was run for.
func runs(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)

	return strings.Fields(string(data))
}

// Two managers that know nothing of each other run no synthesis twice, and leave
// nothing behind.
func TestTwoManagers(t *testing.T) {
	server.StartManager(t, managerArgs...)
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	file := filepath.Join(t.TempDir(), "runs")
	s.synthesizer(`echo "$SYNTHESIS_UUID" >> ` + file + "\n" + paint)
	s.input("c0")
	const compositions, changes = 6, 4
	for i := range compositions {
		s.composition(fmt.Sprintf("c%d", i))
	}
	for n := range changes {
		color := fmt.Sprintf("c%d", n)
		s.input(color)
		if n%2 == 0 {
			continue // the next change comes while this one is followed
		}
		for i := range compositions {
			s.painted(fmt.Sprintf("c%d", i), color)
		}
	}
	all := runs(t, file)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("%d syntheses were run %d times", n, len(all))
	}
	s.tidy()
}

// A manager can be killed at any time. Whatever it was about to do, another one
// does, and nothing is left over.
func TestKilled(t *testing.T) {
	args := append(slices.Clone(managerArgs), "--synthesis-timeout=2s")
	install(t)
	last := server.LaunchManager(t, args...)
	s := newStage(t)
	s.synthesizer("sleep 0.2\n" + paint) // so that there is something to be interrupted
	s.input("c0")
	const compositions, kills = 4, 10
	for i := range compositions {
		s.composition(fmt.Sprintf("c%d", i))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range kills {
		must(t, last.Await())
		s.input(fmt.Sprintf("c%d", n))
		wait := time.Duration(r.IntN(400)) * time.Millisecond
		<-time.After(wait)
		last.Kill()
		last = server.LaunchManager(t, args...)
	}
	s.input("done")
	for i := range compositions {
		s.painted(fmt.Sprintf("c%d", i), "done")
	}
	s.tidy()
}

// Programs of a killed manager end with it.
func TestKilledWithProgram(t *testing.T) {
	m := server.StartManager(t, managerArgs...)
	server.StartManager(t, "--controllers=synthesis", "--webhooks=false") // clears up
	s := newStage(t)
	file := filepath.Join(t.TempDir(), "pid")
	s.synthesizer("echo $$ > " + file + ".new; mv " + file + ".new " + file + "; exec sleep 3600")
	s.input("red")
	s.composition("c")
	var pid string
	cluster.Eventually(t, "the program runs", func() error {
		data, err := os.ReadFile(file)
		pid = strings.TrimSpace(string(data))

		return err
	})
	m.Kill()
	cluster.Eventually(t, "the program has ended", func() error {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return errors.New("it runs")
		}

		return nil
	})
}
