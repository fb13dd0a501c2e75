package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// code is a package with one of everything that pages list.
const code = `package things

const prefix = "example.com/"

// Names of things.
const (
	// LabelColor is the color of a thing.
	LabelColor = prefix + "color"
	// ReasonBroken : LabelColor is unknown.
	ReasonBroken = "Broken"
)

func use(r recorder) {
	r.Eventf(nil, nil, corev1.EventTypeWarning, ReasonBroken, "Use", "")
	r.Eventf(nil, nil, kind, c.Reason, "Use", "")
	gauge := func(name, help string) { prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"ns"}) }
	gauge("things", "Things | all of them.")
	metrics.NewCounter(&metrics.CounterOpts{Subsystem: "a", Name: "b_total", Help: "Bs."})
}
`

func TestPages(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "api", "things"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "api", "things", "things.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := parse(dir, "api")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ page, want string }{
		"a label has its comment without its name":   {labels(src), "| `example.com/color` | is the color of a thing. |\n"},
		"names of constants are replaced":            {src.byDir["api/things"].table("reason", isReason), "| `Broken` | `example.com/color` is unknown. |\n"},
		"an event has its type":                      {events(src), "|---|---|---|\n| `Broken` | Warning | things |\n"},
		"a metric is made by the caller of a helper": {metrics(src), "| `things` | gauge | `ns` | Things \\| all of them. |\n"},
		"the subsystem is part of the name":          {metrics(src), "| `a_b_total` | counter |  | Bs. |\n"},
	} {
		if !strings.Contains(test.page, test.want) {
			t.Errorf("%s: %q is not in:\n%s", name, test.want, test.page)
		}
	}
}
