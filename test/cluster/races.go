package cluster

import (
	"strings"
	"sync"
)

// A raceLog has the data races that programs under test reported, if they were built with the race
// detector. They go on after one, so no test would notice.
type raceLog struct {
	mu    sync.Mutex
	found []string
}

var races raceLog

// look finds reports in the output of a program. They are between two lines of signs.
func (l *raceLog) look(output string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for part := range strings.SplitSeq(output, "==================\n") {
		if strings.HasPrefix(part, "WARNING: DATA RACE") {
			l.found = append(l.found, part)
		}
	}
}

func (l *raceLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.found
}
