package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// defaultWait is the time of --wait without a value.
	defaultWait = "5m"
	// waitInterval is the time between two tries.
	waitInterval = 2 * time.Second
)

// AddWait adds --wait, with an optional time.
func AddWait(cmd *cobra.Command, to *time.Duration, usage string) {
	cmd.Flags().DurationVar(to, "wait", 0, usage+", for at most this time")
	cmd.Flags().Lookup("wait").NoOptDefVal = defaultWait
}

// Wait runs try once or, with a time, until it is done. The end of the time is not an error: the last try
// has left its result. The error is that of the last try.
func Wait(ctx context.Context, timeout time.Duration, try func(context.Context) (done bool, err error)) error {
	return waitEvery(ctx, timeout, waitInterval, try)
}

func waitEvery(ctx context.Context, timeout, interval time.Duration, try func(context.Context) (done bool, err error)) error {
	done, last := try(ctx)
	if done || timeout <= 0 {
		return last
	}

	err := wait.PollUntilContextTimeout(ctx, interval, timeout, false, func(ctx context.Context) (bool, error) {
		done, err := try(ctx)
		if ctx.Err() == nil {
			last = err // a try that the end of the time has interrupted has no result
		}

		return done && err == nil, nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	return last
}
