package delivery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestObserve(t *testing.T) {
	now := time.Unix(1_000_000, 0).UTC()
	at := func(generation, observed int64, ago time.Duration) delivery.Observation {
		return delivery.Observation{Generation: generation, Observed: observed, Since: now.Add(-ago)}
	}
	cases := map[string]struct {
		reason   string
		live     string
		before   delivery.Observation
		want     delivery.Observation
		outdated bool
	}{
		"Absent":   {reason: "Not every kind says what its status is about.", live: "{metadata: {generation: 2}, status: {phase: Done}}"},
		"NoStatus": {reason: "There may be none yet.", live: "{metadata: {generation: 2}}"},
		"Text":     {reason: "What is not a number is of no use.", live: "{metadata: {generation: 2}, status: {observedGeneration: two}}"},
		"Current":  {reason: "The status is about the object as it is.", live: "{metadata: {generation: 2}, status: {observedGeneration: 2}}", before: at(2, 1, time.Hour)},
		"Outdated": {reason: "It is about the object as it was.", live: "{metadata: {generation: 2}, status: {observedGeneration: 1}}", want: at(2, 1, 0), outdated: true},
		"Waiting":  {reason: "The time since then counts.", live: "{metadata: {generation: 2}, status: {observedGeneration: 1}}", before: at(2, 1, time.Minute), want: at(2, 1, time.Minute), outdated: true},
		"Progress": {reason: "It follows, and may follow further.", live: "{metadata: {generation: 3}, status: {observedGeneration: 2}}", before: at(3, 1, time.Hour), want: at(3, 2, 0), outdated: true},
		"Changed":  {reason: "It has something new to follow.", live: "{metadata: {generation: 3}, status: {observedGeneration: 1}}", before: at(2, 1, time.Hour), want: at(3, 1, 0), outdated: true},
		"Stuck":    {reason: "It does not follow, and is judged all the same.", live: "{metadata: {generation: 2}, status: {observedGeneration: 1}}", before: at(2, 1, 2*time.Minute), want: at(2, 1, 2*time.Minute)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON([]byte(manifest(t, "{apiVersion: v1, kind: T, "+tc.live[1:]).Manifest)); err != nil {
				t.Fatal(err)
			}
			got, outdated := delivery.Observe(tc.before, o, now)
			if diff := cmp.Diff(tc.want, got); diff != "" || outdated != tc.outdated {
				t.Errorf("%s\noutdated: %t\n%s", tc.reason, outdated, diff)
			}
		})
	}
}

func TestMigrateMode(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, value string
		want          fields.Mode
		warned        bool
	}{
		"Needed":  {reason: "It is the default.", value: "needed", want: fields.Needed},
		"Whole":   {reason: "Everything in the scopes.", value: "whole", want: fields.Whole},
		"Unknown": {reason: "A typing error takes nothing away from anybody.", value: "Whole", want: fields.Needed, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, with("T", enov1.AnnotationMigrateMode, tc.value))
			if r.Mode != tc.want || len(r.Warnings()) > 0 != tc.warned {
				t.Errorf("%s\n%s, %v", tc.reason, r.Mode, r.Warnings())
			}
			if _, ok := r.Object.GetAnnotations()[enov1.AnnotationMigrateMode]; ok {
				t.Errorf("%s\nthe setting is delivered", tc.reason)
			}
		})
	}
	if r := read(t, with("T")); r.Mode != fields.Needed {
		t.Errorf("without the annotation the mode is %q", r.Mode)
	}
}
