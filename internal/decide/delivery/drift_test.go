package delivery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestDifferences(t *testing.T) {
	cases := map[string]struct {
		reason, a, b string
		want         []string
	}{
		"Same":   {reason: "Nothing differs.", a: "{kind: A, spec: {x: [1]}}", b: "{kind: A, spec: {x: [1]}}"},
		"Server": {reason: "What the server maintains does not count.", a: "{metadata: {resourceVersion: '1', uid: a}, status: {x: 1}}", b: "{metadata: {generation: 2}, status: {x: 2}}"},
		"Value":  {reason: "The path leads to the value.", a: "{spec: {x: {k: 1, z: 1}}}", b: "{spec: {x: {k: 2, z: 1}}}", want: []string{"spec.x.k"}},
		"Absent": {reason: "A field that is missing differs.", a: "{data: {a: '1', b: '1'}}", b: "{data: {b: '1', c: '1'}}", want: []string{"data.a", "data.c"}},
		"List":   {reason: "A list is compared as a whole.", a: "{spec: {x: [{y: 1}]}}", b: "{spec: {x: [{y: 2}]}}", want: []string{"spec.x"}},
		"Labels": {reason: "Other metadata counts.", a: "{metadata: {labels: {a: b}}}", b: "{metadata: {name: x}}", want: []string{"metadata.labels", "metadata.name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, delivery.Differences(object(t, tc.a), object(t, tc.b))); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReportOnly has situations in which nothing is written.
func TestReportOnly(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		s            delivery.Situation
		want         delivery.Verb
	}{
		"Apply":   {reason: "A change is not applied.", text: with("T"), want: delivery.Report},
		"InSync":  {reason: "There is nothing to report.", text: with("T"), s: delivery.Situation{InSync: true}, want: delivery.Nothing},
		"Replace": {reason: "The live object tells first.", text: with("T", "eno.azure.io/replace", "true"), want: delivery.Look},
		"Missing": {reason: "A deleted object is not created again.", text: with("T", "eno.azure.io/replace", "true"), s: delivery.Situation{Looked: true}, want: delivery.Report},
		"Delete":  {reason: "Deletion is not drift.", text: with("T"), s: delivery.Situation{Deleting: true}, want: delivery.Look},
		"Disable": {reason: "What is left alone is not reported.", text: with("T", "eno.azure.io/disable-reconciliation", "true"), want: delivery.Leave},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.s.ReportOnly = true
			if got := delivery.Decide(read(t, tc.text), tc.s); got.Verb != tc.want {
				t.Errorf("%s\nDecide(...): %s, want %s", tc.reason, got.Verb, tc.want)
			}
		})
	}
}

func TestNeedsNoWrite(t *testing.T) {
	cases := map[string]struct {
		reason             string
		drift              string
		same, applied, due bool
		want               bool
	}{
		"Same":     {reason: "It is unchanged.", drift: delivery.DriftCorrect, same: true, want: true},
		"Due":      {reason: "It is written at its interval, changed or not.", drift: delivery.DriftCorrect, same: true, due: true},
		"Drifted":  {reason: "It is corrected.", drift: delivery.DriftCorrect, applied: true},
		"Interval": {reason: "It is corrected at its interval.", drift: delivery.DriftInterval, applied: true, want: true},
		"Now":      {reason: "Which is now.", drift: delivery.DriftInterval, applied: true, due: true},
		"New":      {reason: "A new synthesis is delivered in every mode.", drift: delivery.DriftInterval},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := delivery.NeedsNoWrite(tc.drift, tc.same, tc.applied, tc.due); got != tc.want {
				t.Errorf("%s\nNeedsNoWrite = %v", tc.reason, got)
			}
		})
	}
}

func TestIsDue(t *testing.T) {
	now := time.Unix(1_000, 0)
	cases := map[string]struct {
		reason   string
		interval time.Duration
		due      time.Time
		want     bool
	}{
		"None":  {reason: "It has no interval.", due: now.Add(-time.Hour)},
		"Early": {reason: "The time has not come.", interval: time.Minute, due: now.Add(time.Second)},
		"Now":   {reason: "The time has come.", interval: time.Minute, due: now, want: true},
		"First": {reason: "It has not been reconciled yet.", interval: time.Minute, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := delivery.Settings{Interval: tc.interval}
			if got := s.IsDue(tc.due, now); got != tc.want {
				t.Errorf("%s\nIsDue = %v", tc.reason, got)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	now := time.Unix(1_000, 0)
	d := &delivery.Damper{}
	for range d.Rounds() {
		d.Corrected(now)
	}
	pause := d.Hold(now)
	if pause == 0 {
		t.Fatal("there is no pause")
	}
	cases := map[string]struct {
		reason    string
		got, want time.Duration
	}{
		"Contested": {reason: "Another client has changed it again.", got: d.HoldContested(true, now), want: pause},
		"Unchanged": {reason: "There is nothing to correct.", got: d.HoldContested(false, now)},
		"Over":      {reason: "The pause is over.", got: d.HoldContested(true, now.Add(pause))},
		"Reverting": {reason: "Overrides take back what they do.", got: d.HoldReverting(true, false, now), want: pause},
		"Stable":    {reason: "They do not.", got: d.HoldReverting(false, false, now)},
		"InSync":    {reason: "There is nothing to write.", got: d.HoldReverting(true, true, now)},
		"LongAgo":   {reason: "The pause is over.", got: d.HoldReverting(true, false, now.Add(pause))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, tc.got, tc.want)
			}
		})
	}
}
