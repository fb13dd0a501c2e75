package executor_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/executor"
)

func shell(script string) executor.Job {
	return executor.Job{
		Command: []string{"sh", "-c", script}, Image: "image", Input: []byte("input"),
		CompositionNamespace: "n", CompositionName: "c", SynthesisUUID: "u",
		Env: []enov1.EnvVar{{Name: "OWN", Value: "a b"}, {Name: "IMAGE", Value: "mine"}, {Name: "PATH", Value: "/nowhere"}, {Name: "OWN", Value: "again"}},
	}
}

func TestProcess(t *testing.T) {
	t.Setenv("ARBOR_SECRET", "secret")
	cases := map[string]struct {
		reason  string
		job     executor.Job
		want    string
		log     string
		err     string
		timeout time.Duration
	}{
		"Input":       {reason: "It reads and writes.", job: shell(`cat; echo hello >&2`), want: "input", log: "hello"},
		"Environment": {reason: "It knows whom it runs for, and nothing of us.", job: shell(`echo "$COMPOSITION_NAMESPACE/$COMPOSITION_NAME $SYNTHESIS_UUID $IMAGE $OWN [$ARBOR_SECRET]"`), want: "n/c u image a b []\n"},
		"Deaf":        {reason: "It need not read.", job: shell(`echo done`), want: "done\n"},
		"Fails":       {reason: "What it wrote last is kept.", job: shell(`echo bad >&2; exit 3`), log: "bad", err: "sh failed: exit status 3"},
		"Tail":        {reason: "The end of a long log, from a whole line.", job: shell(`i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done >&2; exit 1`), log: "line 1999", err: "exit status 1"},
		"Absent":      {reason: "The command does not exist.", job: executor.Job{Command: []string{"no-such-command"}}, err: "cannot run no-such-command"},
		"Nothing":     {reason: "There is no command.", err: "it has no command"},
		"Large":       {reason: "It writes too much.", job: shell(`head -c 11534336 /dev/zero`), err: "larger than 10 MiB"},
		"Endless":     {reason: "It never ends.", job: shell(`echo waiting >&2; exec sleep 600`), log: "waiting", err: "sh did not end in time and was killed", timeout: 300 * time.Millisecond},
		"Background":  {reason: "What it left behind holds nothing up.", job: shell(`sleep 600 & echo done`), want: "done\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.timeout)
				defer cancel()
			}
			got, err := (&executor.Process{}).Execute(ctx, tc.job)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if !strings.HasSuffix(got.Log, tc.log) || len(got.Log) > 4<<10 {
				t.Errorf("%s\nthe log is %q", tc.reason, got.Log)
			}
			if diff := cmp.Diff(tc.want, string(got.Output)); tc.err == "" && diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProcessLog runs a program that continues after it has written: the log has everything,
// immediately.
func TestProcessLog(t *testing.T) {
	from, to := io.Pipe()
	read := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		line := make([]byte, len("hello\n"))
		_, _ = io.ReadFull(from, line)
		read <- string(line)
		cancel()
		_, _ = io.Copy(io.Discard, from)
	}()
	got, err := (&executor.Process{Log: to}).Execute(ctx, shell(`echo hello >&2; exec sleep 600`))
	if line := <-read; line != "hello\n" || got.Log != "hello" || err == nil {
		t.Errorf("the log is %q, the end of it %q, %v", line, got.Log, err)
	}
}

// Child processes of a program end with it.
func TestProcessGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := (&executor.Process{}).Execute(ctx, shell(`sleep 600 & echo $! > `+file+`.new; mv `+file+`.new `+file+`; wait`))
		ended <- err
	}()
	var child int
	await(t, func() bool {
		data, err := os.ReadFile(file)
		if err == nil {
			child, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}

		return err == nil
	})
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("it ended with %v", err)
	}
	await(t, func() bool {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")

		return syscall.Kill(child, 0) != nil || err != nil || strings.Contains(string(data), ") Z ")
	})
}

// TestProcessSession has a program leave processes behind that are in sessions of their
// own, when it ends and when it is killed.
func TestProcessSession(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	cases := map[string]struct {
		reason, script string
		killed         bool
	}{
		"Ends":   {"The program ends by itself.", `setsid sh -c 'echo $$ > "$OWN.new"; mv "$OWN.new" "$OWN"; exec sleep 600' > /dev/null 2>&1 & until [ -e "$OWN" ]; do sleep 0.01; done`, false},
		"Killed": {"The program is killed.", `setsid sh -c 'echo $$ > "$OWN.new"; mv "$OWN.new" "$OWN"; exec sleep 600' > /dev/null 2>&1 & exec sleep 600`, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			job := shell(tc.script)
			job.Env = []enov1.EnvVar{{Name: "OWN", Value: file}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := (&executor.Process{}).Execute(ctx, job)
				ended <- err
			}()
			var child int
			await(t, func() bool {
				data, err := os.ReadFile(file)
				if err == nil {
					child, err = strconv.Atoi(strings.TrimSpace(string(data)))
				}

				return err == nil
			})
			if tc.killed {
				cancel()
			}
			if err := <-ended; (err != nil) != tc.killed {
				t.Errorf("it ended with %v", err)
			}
			defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
			await(t, func() bool {
				data, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/stat")

				return err != nil || strings.Contains(string(data), ") Z ")
			})
		})
	}
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if condition() {
			return
		}
		<-tick.C
	}
	t.Fatal("waited in vain")
}
