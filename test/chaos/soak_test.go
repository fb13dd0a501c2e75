package chaos_test

import (
	"errors"
	"testing"
	"time"
)

// A sample is what a manager holds at a moment, while the load is on.
type sample struct {
	at         time.Duration
	memory     float64
	goroutines float64
}

// What may be added in an hour, as a share of what there was: less than what would be
// noticed in a month between two releases is noise here, where half an hour is measured.
const (
	moreMemory     = 0.25
	moreRoutinesPH = 0.10
	// samples are taken in all; the first quarter warms up.
	samples = 40
)

// TestSoak has one manager under load for long, and then asks for all invariants and for
// memory and goroutines that do not grow.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("there is a soak in make chaos")
	}
	w := newWorld(t)
	w.load.start()
	began := time.Now()
	var all []sample
	tick := time.NewTicker(*soak / samples)
	defer tick.Stop()
	for range samples {
		<-tick.C
		s, err := w.sample(time.Since(began))
		must(t, err)
		all = append(all, s)
		t.Logf("%8s  %6.1f MiB  %4.0f goroutines  %3d watches  %d writes", s.at.Round(time.Second), s.memory/(1<<20), s.goroutines, w.proxy.Watches(), w.load.progress())
	}
	w.load.end(w.revive)
	if _, err := w.settle(); err != nil {
		t.Fatal(err)
	}
	all = all[len(all)/4:]
	memory, goroutines := slope(all, func(s sample) float64 { return s.memory }), slope(all, func(s sample) float64 { return s.goroutines })
	t.Logf("soak of %s, %d writes: memory %+.1f MiB an hour on %.1f, goroutines %+.1f an hour on %.0f",
		*soak, w.load.progress(), memory/(1<<20), all[0].memory/(1<<20), goroutines, all[0].goroutines)
	if *soak < 10*time.Minute {
		return // too short to distinguish growth from noise
	}
	if memory > moreMemory*all[0].memory || goroutines > moreRoutinesPH*all[0].goroutines {
		t.Error("the manager grows")
	}
}

func (w *world) sample(at time.Duration) (sample, error) {
	memory, err := w.managers[0].Value("process_resident_memory_bytes")
	goroutines, err2 := w.managers[0].Value("go_goroutines")

	return sample{at, memory, goroutines}, errors.Join(err, err2)
}

// slope of the line that fits best, an hour.
func slope(all []sample, of func(sample) float64) float64 {
	var x, y, xx, xy float64
	n := float64(len(all))
	for _, s := range all {
		h := s.at.Hours()
		x, y, xx, xy = x+h, y+of(s), xx+h*h, xy+h*of(s)
	}

	return (n*xy - x*y) / (n*xx - x*x)
}
