package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
)

// interval is the time between two looks of --watch.
const interval = 2 * time.Second

// Run runs a command once or, with --watch, again and again until ctx ends: then its output is printed
// whenever it differs from what was printed last, and an interrupt is not an error. Errors of the first run
// end the command; later ones are printed, since a cluster may come back.
func (f *Flags) Run(ctx context.Context, streams *genericiooptions.IOStreams, once func(context.Context) error) error {
	if !f.Watch {
		return once(ctx)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	return f.repeat(ctx, streams, once, ticker.C)
}

func (f *Flags) repeat(ctx context.Context, streams *genericiooptions.IOStreams, once func(context.Context) error, ticks <-chan time.Time) error {
	to := *streams
	defer func() { *streams = to }()

	var last frame
	for first := true; ; first = false {
		next, err := capture(ctx, to, streams, once)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			next.errOut = "Error: " + err.Error() + "\n"
		}
		if next != last {
			next.print(to, first)
			last = next
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// A frame is what a command printed.
type frame struct{ out, errOut string }

// capture runs a command, and returns what it prints to streams. That it found something is not an error.
func capture(ctx context.Context, to genericiooptions.IOStreams, streams *genericiooptions.IOStreams, once func(context.Context) error) (frame, error) {
	out, errOut := render.NewBuffer(to.Out), &bytes.Buffer{}
	streams.Out, streams.ErrOut = out, errOut
	err := once(ctx)
	if exit, ok := errors.AsType[*command.ExitError](err); ok && exit.Code == command.ExitFound && exit.Err == nil {
		err = nil
	}

	return frame{out.String(), errOut.String()}, err
}

// print shows a frame: on a terminal in the place of the one before, elsewhere below it after an empty line.
func (s frame) print(to genericiooptions.IOStreams, first bool) {
	switch {
	case render.StyleOf(to.Out, os.Getenv).Terminal:
		_, _ = io.WriteString(to.Out, "\x1b[H\x1b[2J")
	case !first:
		_, _ = fmt.Fprintln(to.Out)
	}
	_, _ = io.WriteString(to.Out, s.out)
	_, _ = io.WriteString(to.ErrOut, s.errOut)
}
