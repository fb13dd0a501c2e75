package delivery

import "time"

// These are the limits for corrections of an object before it is left alone for a while.
const (
	maxCorrections = 5
	fightWindow    = time.Minute

	firstPause = 10 * time.Second
	maxPause   = 5 * time.Minute
)

// A Damper counts how often one object was corrected. If that is too often, it is
// left alone, twice as long each time. The zero value is ready to use.
type Damper struct {
	// corrections are those of the last minute, and not more than are too many.
	corrections []time.Time
	pause       time.Duration
	until       time.Time
}

// Corrected counts one correction.
func (d *Damper) Corrected(now time.Time) {
	if !d.until.IsZero() && now.Sub(d.until) > 2*maxPause {
		d.pause = 0 // that fight is over
	}
	d.corrections = append(d.corrections, now)
	for len(d.corrections) > 0 && now.Sub(d.corrections[0]) >= fightWindow {
		d.corrections = d.corrections[1:]
	}
	if len(d.corrections) < maxCorrections && (d.pause == 0 || now.Sub(d.until) >= fightWindow) {
		return
	}
	d.pause = min(max(2*d.pause, firstPause), maxPause)
	d.until, d.corrections = now.Add(d.pause), nil
}

// Hold is how long the object must be left alone, 0 if it need not be.
func (d *Damper) Hold(now time.Time) time.Duration { return max(d.until.Sub(now), 0) }

// HoldContested is how long an object must be left alone that another client keeps changing.
func (d *Damper) HoldContested(drifted bool, now time.Time) time.Duration {
	if !drifted {
		return 0
	}

	return d.Hold(now)
}

// HoldReverting is how long an object must be left alone whose overrides take back what they do.
func (d *Damper) HoldReverting(reverting, inSync bool, now time.Time) time.Duration {
	if !reverting || inSync {
		return 0
	}

	return d.Hold(now)
}

// Rounds is how many corrections it takes.
func (d *Damper) Rounds() int { return maxCorrections }
