package manager

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// setupLogging sends everything, client-go's words included, through one
// structured logger.
func setupLogging(o Options) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return fmt.Errorf("--log-level %q: it must be debug, info, warn or error", o.LogLevel)
	}
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	if o.LogFormat == logText {
		handler = slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	}
	logger := logr.FromSlogHandler(handler)
	logger = logger.WithSink(withoutEvents{logger.GetSink()})
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	return nil
}

// withoutEvents keeps recorded events out of the log, at the level debug. They are in the cluster,
// for users who may read them there: they can contain the messages of a Synthesizer, and those can
// contain its inputs.
type withoutEvents struct{ logr.LogSink }

// eventsName is what controller-runtime calls the logger of recorded events.
const eventsName = "events"

// WithName returns a sink that is silent if it is for events.
func (s withoutEvents) WithName(name string) logr.LogSink {
	if name == eventsName {
		return logr.Discard().GetSink()
	}

	return withoutEvents{s.LogSink.WithName(name)}
}

// WithValues keeps it so.
func (s withoutEvents) WithValues(values ...any) logr.LogSink {
	return withoutEvents{s.LogSink.WithValues(values...)}
}
