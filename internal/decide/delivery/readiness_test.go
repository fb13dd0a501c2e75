package delivery_test

import (
	"strings"
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
		"Absent":   {reason: "Not every kind reports the generation of its status.", live: "{metadata: {generation: 2}, status: {phase: Done}}"},
		"NoStatus": {reason: "There may be none yet.", live: "{metadata: {generation: 2}}"},
		"Text":     {reason: "What is not a number is of no use.", live: "{metadata: {generation: 2}, status: {observedGeneration: two}}"},
		"Current":  {reason: "The status is about the object as it is.", live: "{metadata: {generation: 2}, status: {observedGeneration: 2}}", before: at(2, 1, time.Hour)},
		"Outdated": {reason: "It is about the object as it was.", live: "{metadata: {generation: 2}, status: {observedGeneration: 1}}", want: at(2, 1, 0), outdated: true},
		"Waiting":  {reason: "The time since then counts.", live: "{metadata: {generation: 2}, status: {observedGeneration: 1}}", before: at(2, 1, time.Minute), want: at(2, 1, time.Minute), outdated: true},
		"Progress": {reason: "It follows, and may follow further.", live: "{metadata: {generation: 3}, status: {observedGeneration: 2}}", before: at(3, 1, time.Hour), want: at(3, 2, 0), outdated: true},
		"Changed":  {reason: "It has something new to follow.", live: "{metadata: {generation: 3}, status: {observedGeneration: 1}}", before: at(2, 1, time.Hour), want: at(3, 1, 0), outdated: true},
		"Stuck":    {reason: "It does not follow, and counts all the same.", live: "{metadata: {generation: 2}, status: {observedGeneration: 1}}", before: at(2, 1, 2*time.Minute), want: at(2, 1, 2*time.Minute)},
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

// TestReadinessMode has manifests and compositions ask for kstatus, and not.
func TestReadinessMode(t *testing.T) {
	const mode = enov1.AnnotationReadinessMode
	expression := []string{enov1.AnnotationReadiness, "true"}
	deployment := func(annotations ...string) string {
		return strings.Replace(with("Deployment", annotations...), "apiVersion: v1", "apiVersion: apps/v1", 1)
	}
	for name, tc := range map[string]struct {
		reason, manifest, composition, flag string
		want, watched, warned               bool
	}{
		"Default":       {reason: "Eno's readiness is the default.", manifest: deployment()},
		"Manifest":      {reason: "A manifest asks for it.", manifest: deployment(mode, "kstatus"), want: true, watched: true},
		"Both":          {reason: "With an expression, both count.", manifest: deployment(append(expression, mode, "kstatus")...), want: true, watched: true},
		"Composition":   {reason: "The composition asks for it.", manifest: deployment(), composition: "kstatus", want: true, watched: true},
		"Expression":    {reason: "The author of the manifest said when it is ready.", manifest: deployment(expression...), composition: "kstatus", flag: "kstatus", watched: true},
		"Flag":          {reason: "The operator asks for it.", manifest: deployment(), flag: "kstatus", want: true, watched: true},
		"ManifestFirst": {reason: "The manifest takes precedence.", manifest: deployment(mode, "eno"), composition: "kstatus", flag: "kstatus"},
		"ThenTheOther":  {reason: "Then the composition.", manifest: deployment(), composition: "eno", flag: "kstatus"},
		"Unknown":       {reason: "A typing error is reported.", manifest: deployment(mode, "Kstatus"), flag: "kstatus", want: true, watched: true, warned: true},
		"NoRules":       {reason: "Of a kind without health, objects are ready once applied.", manifest: with("ConfigMap", mode, "kstatus"), want: true},
		"Patch":         {reason: "The target of a Patch may never exist.", manifest: "{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {apiVersion: apps/v1, kind: Deployment, ops: []}}", flag: "kstatus"},
	} {
		t.Run(name, func(t *testing.T) {
			reader := delivery.NewReader()
			reader.Readiness = tc.flag
			composition := map[string]string{}
			if tc.composition != "" {
				composition[mode] = tc.composition
			}
			r, err := reader.Read(manifest(t, tc.manifest), composition)
			if err != nil {
				t.Fatal(err)
			}
			if r.Kstatus != tc.want || r.Watched() != tc.watched || len(r.Warnings()) > 0 != tc.warned {
				t.Errorf("%s\nkstatus %t, watched %t, %v", tc.reason, r.Kstatus, r.Watched(), r.Warnings())
			}
			if _, ok := r.Object.GetAnnotations()[mode]; ok {
				t.Errorf("%s\nthe setting is delivered", tc.reason)
			}
		})
	}
}

// TestReadyByKstatus has a claim that is ready once it has a volume.
func TestReadyByKstatus(t *testing.T) {
	r := read(t, with("PersistentVolumeClaim", enov1.AnnotationReadinessMode, "kstatus"))
	now := time.Unix(1_000_000, 0)
	for phase, want := range map[string]bool{"Pending": false, "Bound": true} {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(manifest(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: "+phase+"}}").Manifest)); err != nil {
			t.Fatal(err)
		}
		if since, got, _ := r.Ready(o, nil, now); got != want || got && !since.Equal(now) {
			t.Errorf("a claim that is %s: ready %t, since %s", phase, got, since)
		}
	}
}
