package executor

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// maxJob is how large a job may be that comes over a socket. Inputs are objects
	// of an API server, which are a few megabytes at most each.
	maxJob = 64 << 20

	// redial is how often a socket is looked for that is not there yet.
	redial = 50 * time.Millisecond

	// hangover is how much longer than its time a program's end may take to come
	// over a socket.
	hangover = time.Second
)

// ErrLost is why a program has no result whose executor has ended before it did.
var ErrLost = errors.New("the executor ended before the program did")

// A Socket runs programs in another process, which serves the other side of a unix socket. There is
// one program for each socket.
type Socket struct {
	Path string
}

// A request is what a Socket sends, and a response what it gets. Both are JSON after eight bytes
// with its length.
type request struct {
	Job Job
	// Timeout of the program: the time of the other side need not be the same.
	Timeout time.Duration
}

type response struct {
	Result

	Error string
}

// Execute waits for the socket to appear, hands the job over and waits for what
// comes back. What comes back is not trusted: it may be of a certain size, and is
// read as text only.
func (s *Socket) Execute(ctx context.Context, job Job) (Result, error) {
	connection, err := s.dial(ctx)
	if err != nil {
		return Result{}, err
	}
	defer connection.Close()
	deadline, limited := ctx.Deadline()
	r := request{Job: job}
	patient := context.WithoutCancel(ctx)
	if limited {
		r.Timeout = time.Until(deadline)
		// The process that ran the program has a better explanation than that it did not end.
		var cancel context.CancelFunc
		patient, cancel = context.WithDeadline(patient, deadline.Add(hangover))
		defer cancel()
	}
	// A closed connection ends the program.
	late := context.AfterFunc(patient, func() { _ = connection.Close() })
	defer late()
	unwanted := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = connection.Close()
		}
	})
	defer unwanted()

	back, err := exchange(connection, r)
	switch {
	case err == nil:
		return back.read()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Result{}, errors.New("the program did not end in time")
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("the program was ended: %w", context.Cause(ctx))
	case isLost(err):
		return Result{}, fmt.Errorf("%w: %w", ErrLost, err)
	default:
		return Result{}, fmt.Errorf("cannot read the result of the program: %w", err)
	}
}

// isLost reports whether an error means that the other side of a connection is gone.
func isLost(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, syscall.ECONNRESET}, func(gone error) bool { return errors.Is(err, gone) })
}

func exchange(connection net.Conn, r request) (response, error) {
	var back response
	if err := send(connection, r); err != nil {
		return back, err
	}
	err := receive(connection, 2*DefaultMaxOutput, &back)

	return back, err
}

// read takes from a response what a Process would have returned at most.
func (r response) read() (Result, error) {
	r.Log = r.Log[max(0, len(r.Log)-tail):]
	if r.Error != "" {
		return Result{Log: r.Log}, errors.New(r.Error[:min(len(r.Error), tail)])
	}
	if len(r.Output) > DefaultMaxOutput {
		return Result{Log: r.Log}, fmt.Errorf("cannot use what the program wrote: it is larger than %d MiB", DefaultMaxOutput>>20)
	}

	return r.Result, nil
}

// dial connects to the socket, which may not be there yet.
func (s *Socket) dial(ctx context.Context) (net.Conn, error) {
	tick := time.NewTicker(redial)
	defer tick.Stop()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Path)
		if err == nil {
			return connection, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no executor served the socket in time: %w", err)
		case <-tick.C:
		}
	}
}

// Serve runs one job for the first client that connects to a socket, and returns when the result is
// sent. It kills the program when ctx ends, or the connection.
func Serve(ctx context.Context, path string, by Executor) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove an old socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	defer listener.Close()
	ended := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer ended()
	connection, err := listener.Accept()
	if err != nil {
		return fmt.Errorf("no client connected with a job: %w", err)
	}
	defer connection.Close()

	return serve(ctx, connection, by)
}

func serve(ctx context.Context, connection net.Conn, by Executor) error {
	var r request
	if err := receive(connection, maxJob, &r); err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	go func() {
		// Nothing more is sent: this ends when the connection does.
		_, _ = connection.Read(make([]byte, 1))
		cancel()
	}()
	var back response
	result, err := by.Execute(ctx, r.Job)
	back.Result = result
	if err != nil {
		// The output of a failed program is not used, and may be large.
		back.Error, back.Output = err.Error(), nil
	}
	if err := send(connection, back); err != nil {
		return fmt.Errorf("cannot hand over the result: %w", err)
	}

	return nil
}

func send(to io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = to.Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(data))), data...))

	return err
}

// receive reads a message of a certain size at most.
func receive(from io.Reader, most uint64, message any) error {
	var size [8]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint64(size[:])
	if n > most {
		return fmt.Errorf("a message of %d bytes is too large: %d are allowed", n, most)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(from, data); err != nil {
		return err
	}

	return json.Unmarshal(data, message)
}
