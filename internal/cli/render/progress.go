package render

import (
	"fmt"
	"io"
	"time"
)

// progressDelay is how long a step may take before it says what it is doing.
const progressDelay = time.Second

// Progress shows text on a terminal, once a second from the second on,
// until stop is called. Elsewhere it does nothing.
func Progress(w io.Writer, text func() string) (stop func()) {
	if !isTerminal(w) {
		return func() {}
	}

	ticker := time.NewTicker(progressDelay)
	end := redraw(w, ticker.C, text)

	return func() {
		ticker.Stop()
		end()
	}
}

// redraw writes a line at every tick over the one before, and wipes it out at
// the end.
func redraw(w io.Writer, ticks <-chan time.Time, text func() string) (stop func()) {
	const wipe = "\r\x1b[K"

	done, gone := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(gone)

		shown := false

		for {
			select {
			case <-ticks:
				shown = true
				_, _ = fmt.Fprint(w, wipe, text())
			case <-done:
				if shown {
					_, _ = fmt.Fprint(w, wipe)
				}

				return
			}
		}
	}()

	return func() {
		close(done)
		<-gone
	}
}
