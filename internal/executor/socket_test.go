package executor_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/executor"
)

// A program that runs over a socket has the same result as a local process.
func TestSocket(t *testing.T) {
	t.Setenv("FROM_IMAGE", "yes")
	cases := map[string]struct {
		reason  string
		job     executor.Job
		want    string
		log     string
		err     string
		timeout time.Duration
	}{
		"Input":       {reason: "It reads and writes.", job: contained(`cat; echo hello >&2`), want: "input", log: "hello"},
		"Environment": {reason: "It has what the image says, and what it is run for.", job: contained(`echo "$FROM_IMAGE $IMAGE $OWN"`), want: "yes image a b\n"},
		"Bytes":       {reason: "Whatever it writes arrives.", job: contained(`printf '\000\377'`), want: "\x00\xff"},
		"Fails":       {reason: "Why it failed comes along.", job: contained(`echo bad >&2; exit 3`), log: "bad", err: "sh failed: exit status 3"},
		"Large":       {reason: "There is a limit.", job: contained(`head -c 11534336 /dev/zero`), err: "larger than 10 MiB"},
		"Endless":     {reason: "It ends with its time, and says what it said.", job: contained(`echo waiting >&2; exec sleep 600`), log: "waiting", err: "sh did not end in time and was killed", timeout: 300 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "socket")
			served := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tc.timeout, time.Minute))
			defer cancel()
			go func() { served <- executor.Serve(t.Context(), path, &executor.Process{Inherit: true}) }()
			got, err := (&executor.Socket{Path: path}).Execute(ctx, tc.job)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
			}
			if got.Log != tc.log {
				t.Errorf("%s\nthe log is %q", tc.reason, got.Log)
			}
			if diff := gocmp.Diff(tc.want, string(got.Output)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if err := <-served; err != nil {
				t.Errorf("it was served with %v", err)
			}
		})
	}
}

// A program whose client has disconnected ends, on both sides.
func TestSocketGivenUp(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "socket"), filepath.Join(dir, "began")
	served := make(chan error, 1)
	go func() { served <- executor.Serve(t.Context(), path, &executor.Process{}) }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		await(t, func() bool {
			_, err := os.Stat(file)

			return err == nil
		})
		cancel()
	}()
	if _, err := (&executor.Socket{Path: path}).Execute(ctx, shell(`touch `+file+`; exec sleep 600`)); err == nil || !strings.Contains(err.Error(), "was ended") {
		t.Errorf("it ended with %v", err)
	}
	if err := <-served; err == nil {
		t.Error("a result was handed over to nobody")
	}
}

// The socket is not served.
func TestSocketAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := (&executor.Socket{Path: filepath.Join(t.TempDir(), "socket")}).Execute(ctx, shell(`true`)); err == nil || !strings.Contains(err.Error(), "no executor served the socket in time") {
		t.Errorf("it ended with %v", err)
	}
}

// The other side is not trusted.
func TestSocketHostile(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer []byte
		want   string
	}{
		"Huge":    {"No more is read than fits.", binary.BigEndian.AppendUint64(nil, 1<<60), "too large"},
		"Garbage": {"What cannot be read is no result.", append(binary.BigEndian.AppendUint64(nil, 3), "abc"...), "invalid character"},
		"Short":   {"Half a result is none.", binary.BigEndian.AppendUint64(nil, 3), "the executor ended before the program did"},
		"Long":    {"A reason is a line, not a book.", message(`{"Error":"` + strings.Repeat("x", 1<<20) + `"}`), "xxx"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "socket")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1<<16))
				_, _ = c.Write(tc.answer)
				_ = c.Close()
			}()
			_, err = (&executor.Socket{Path: path}).Execute(t.Context(), shell("true"))
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 1<<13 {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// contained is shell without a PATH of its own, which in a container counts.
func contained(script string) executor.Job {
	job := shell(script)
	job.Env = job.Env[:2]

	return job
}

func message(text string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(text))), text...)
}
