package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/internal/executor"
)

// A program that was killed for lack of memory is reported as such, with the limit of its
// container. The files of the container's cgroup are made here, and the program changes
// them as the kernel does.
func TestProcessMemory(t *testing.T) {
	const advice = ": raise spec.podOverrides.resources.limits.memory of the Synthesizer"
	v1, v2 := map[string]string{
		"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "memory/memory.limit_in_bytes": "67108864\n",
	}, map[string]string{
		"memory.events": "low 0\noom 0\noom_kill 3\noom_group_kill 0\n", "memory.max": "67108864\n",
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		script string
		want   string
	}{
		"V2":        {"The kernel counts it.", v2, `sed -i 's/oom_kill 3/oom_kill 4/' $DIR/memory.events; kill -9 $$`, "sh failed: signal: killed; it ran out of memory, the limit of the container is 64Mi" + advice},
		"V1":        {"So does an older one.", v1, `sed -i 's/oom_kill 0/oom_kill 1/' $DIR/memory/memory.oom_control; kill -9 $$`, "signal: killed; it ran out of memory, the limit of the container is 64Mi" + advice},
		"Child":     {"It can be a program that it has started.", v2, `sed -i 's/oom_kill 3/oom_kill 4/' $DIR/memory.events; exit 1`, "exit status 1; it ran out of memory, the limit of the container is 64Mi" + advice},
		"Other":     {"Another cause is not called lack of memory.", v2, `kill -9 $$`, "sh failed: signal: killed"},
		"Unlimited": {"A limit that is none is not named.", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, `kill -9 $$`, "signal: killed; it probably ran out of memory" + advice},
		"Uncounted": {"Without a count it is likely.", map[string]string{"memory.max": "max\n"}, `sh -c 'kill -9 $$'`, "; it probably ran out of memory" + advice},
		"Exit":      {"Who ends by itself was not killed.", map[string]string{"memory.max": "1024\n"}, `exit 3`, "sh failed: exit status 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range tc.files {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := (&executor.Process{Cgroup: dir}).Execute(t.Context(), shell("DIR="+dir+"\n"+tc.script))
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := (&executor.Process{}).Execute(t.Context(), shell(`kill -9 $$`)); err == nil || !strings.HasSuffix(err.Error(), "signal: killed; a likely cause is a lack of memory") {
		t.Errorf("without a container: %v", err)
	}
}

// A program in a container has a home that it can write to.
func TestProcessHome(t *testing.T) {
	cases := map[string]struct{ reason, home, want string }{
		"None":  {"An image without one.", "", os.TempDir()},
		"Root":  {"What runtimes set for a user that the image does not know.", "/", os.TempDir()},
		"Image": {"That of the image stays.", "/home/helm", "/home/helm"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", tc.home)
			got, err := (&executor.Process{Inherit: true}).Execute(t.Context(), contained(`echo $HOME`))
			if err != nil || strings.TrimSpace(string(got.Output)) != tc.want {
				t.Errorf("%s\n%q, %v", tc.reason, got.Output, err)
			}
		})
	}
}
