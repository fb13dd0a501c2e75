package delivery_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

var reader = delivery.NewReader()

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := map[string]any{}
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}

	return o
}

func manifest(t *testing.T, text string) enov1.Manifest {
	t.Helper()
	data, err := json.Marshal(object(t, text))
	if err != nil {
		t.Fatal(err)
	}

	return enov1.Manifest{Manifest: string(data)}
}

// with is a manifest of a kind with annotations.
func with(kind string, annotations ...string) string {
	text := fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: a, namespace: n, annotations: {x: why", kind)
	for pair := range slices.Chunk(annotations, 2) {
		text += fmt.Sprintf(", %s: %q", pair[0], pair[1])
	}

	return text + "}}}"
}

func read(t *testing.T, text string) *delivery.Resource {
	t.Helper()
	r, err := reader.Read(manifest(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}

	return r
}

func TestRead(t *testing.T) {
	r, err := reader.Read(manifest(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  resourceVersion: "7"
  creationTimestamp: null
  labels: {eno.azure.io/x: y}
  annotations: {eno.azure.io/replace: "true", eno.azure.io/reconcile-interval: 10ms, mine: stays}
spec: {replicas: 4}
status: {replicas: 4}
`), map[string]string{enov1.AnnotationReplace: "false", enov1.AnnotationDeletionStrategy: "foreground", enov1.AnnotationReadinessGroup: "7"})
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, annotations: {mine: stays}}
`)
	want["spec"] = map[string]any{"replicas": int64(4)}
	if diff := cmp.Diff(want, r.Object.Object); diff != "" {
		t.Errorf("Object: -want, +got:\n%s", diff)
	}
	if !r.Replace || !r.Foreground || r.Orphan || r.Interval != time.Second || r.ReadinessGroup != 0 || r.DeletionGroup != nil {
		t.Errorf("Settings: %+v", r.Settings)
	}
	if got := r.String(); got != "Deployment shop/web" {
		t.Errorf("String(): %q", got)
	}
	infra := read(t, with("Service"))
	if infra.ReadinessGroup != -100 || infra.DeletionGroup == nil || *infra.DeletionGroup != 100 {
		t.Errorf("a Service comes in group %d", infra.ReadinessGroup)
	}
	if got := read(t, with("Service", enov1.AnnotationReadinessGroup, "3")).ReadinessGroup; got != 3 {
		t.Errorf("a Service with a group of its own comes in group %d", got)
	}
	if got := read(t, with("Thing", enov1.AnnotationUseDefaultReconcileInterval, "true")).Interval; got != delivery.DefaultInterval {
		t.Errorf("the default interval is %s", got)
	}
}

// TestCheck has manifests that a synthesis must not have. Delivery of stored ones
// ignores what is invalid, if it is known which object is meant.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
		// unknown is true if the manifest does not identify an object.
		unknown bool
	}{
		"Group":    {reason: "Groups are whole numbers.", text: with("Service", enov1.AnnotationReadinessGroup, "first"), want: `eno.azure.io/readiness-group: cannot use "first"`},
		"Deletion": {reason: "So are those of deletion.", text: with("Service", enov1.AnnotationDeletionGroup, "1.5"), want: `eno.azure.io/deletion-group: cannot use "1.5"`},
		"CEL":      {reason: "An expression must compile.", text: with("Service", enov1.AnnotationReadiness+"-x", "self."), want: `eno.azure.io/readiness-x: cannot use "self."`},
		"Scope":    {reason: "A scope must be readable.", text: with("Service", enov1.AnnotationMigrateOwnership, "spec["), want: enov1.AnnotationMigrateOwnership},
		"Nameless": {reason: "It must be known which object is meant.", text: "{apiVersion: v1, kind: T}", want: "no metadata.name", unknown: true},
		"Kindless": {reason: "And of which kind.", text: "{apiVersion: v1, metadata: {name: a}}", want: "cannot read the manifest", unknown: true},
		"Unquoted": {reason: "An annotation that is no string would hide all others.", text: "{apiVersion: v1, kind: T, metadata: {name: a, annotations: {x: true}}}", want: "in quotes", unknown: true},
		"Target":   {reason: "A patch has a target.", text: "{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {ops: []}}", want: "patch.apiVersion and patch.kind", unknown: true},
		"Ops":      {reason: "And a list of operations.", text: "{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {apiVersion: v1, kind: Pod, ops: none}}", want: "patch.ops", unknown: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := manifest(t, tc.text)
			if all := reader.Check(m.Manifest); len(all) != 1 || !strings.Contains(all[0].Error(), tc.want) {
				t.Fatalf("%s\nCheck(...): %v, want %q", tc.reason, all, tc.want)
			}
			r, err := reader.Read(m, nil)
			if (err != nil) != tc.unknown || (r == nil) != tc.unknown {
				t.Fatalf("%s\nRead(...): %v, %v", tc.reason, r, err)
			}
			if r == nil {
				return
			}
			if w := r.Warnings(); len(w) != 1 || !strings.Contains(w[0].Error(), tc.want) {
				t.Errorf("%s\nWarnings(): %v, want %q", tc.reason, w, tc.want)
			}
			if r.ReadinessGroup != -100 || *r.DeletionGroup != 100 || r.Watched() || r.Scopes != nil {
				t.Errorf("%s\nThe settings are not the default: %+v", tc.reason, r.Settings)
			}
		})
	}
}

// TestReadIgnores has settings that are not used because their values are invalid. Eno
// ignores them too.
func TestReadIgnores(t *testing.T) {
	cases := map[string]struct{ annotation, value, want string }{
		"Interval": {enov1.AnnotationReconcileInterval, "soon", `annotation eno.azure.io/reconcile-interval: cannot use "soon": there is no interval`},
		"Negative": {enov1.AnnotationReconcileInterval, "-5s", `cannot use "-5s"`},
		"Replace":  {enov1.AnnotationReplace, "True", `annotation eno.azure.io/replace: cannot use "True": it counts as "false"`},
		"Updates":  {enov1.AnnotationDisableUpdates, "1", `cannot use "1"`},
		"Disable":  {enov1.AnnotationDisableReconciliation, "yes", `cannot use "yes"`},
		"Default":  {enov1.AnnotationUseDefaultReconcileInterval, "t", `cannot use "t"`},
		"Open":     {enov1.AnnotationFailOpen, "yes", `annotation eno.azure.io/fail-open: cannot use "yes"`},
		"Strategy": {enov1.AnnotationDeletionStrategy, "orphn", `cannot use "orphn": the object is deleted in the background; write "orphan" or "foreground"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := read(t, with("T", tc.annotation, tc.value))
			if w := r.Warnings(); len(w) != 1 || !strings.Contains(w[0].Error(), tc.want) {
				t.Errorf("Warnings(): %v, want %q", w, tc.want)
			}
			if r.Interval != 0 || r.Replace || r.DisableUpdates || r.DisableReconciliation || r.FailOpen || r.Orphan || r.Foreground {
				t.Errorf("Settings: %+v", r.Settings)
			}
		})
	}
}

// TestReadAccepts has values that Eno accepts.
func TestReadAccepts(t *testing.T) {
	cases := map[string]struct {
		annotation, value string
		composition       map[string]string
		want              func(*delivery.Resource) bool
	}{
		"Orphan":     {enov1.AnnotationDeletionStrategy, "Orphan", nil, func(r *delivery.Resource) bool { return r.Orphan }},
		"Foreground": {enov1.AnnotationDeletionStrategy, "FOREGROUND", nil, func(r *delivery.Resource) bool { return r.Foreground }},
		"Background": {enov1.AnnotationDeletionStrategy, "Background", nil, func(r *delivery.Resource) bool { return !r.Foreground && !r.Orphan }},
		"Open":       {enov1.AnnotationFailOpen, "1", nil, func(r *delivery.Resource) bool { return r.FailOpen }},
		"Inherited":  {"own", "x", map[string]string{enov1.AnnotationFailOpen: "true"}, func(r *delivery.Resource) bool { return !r.FailOpen }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := reader.Read(manifest(t, with("T", tc.annotation, tc.value)), tc.composition)
			if err != nil || len(r.Warnings()) > 0 || !tc.want(r) {
				t.Errorf("Read(...): %+v, %v, warnings %v", r.Settings, err, r.Warnings())
			}
		})
	}
}

// TestFailOpen has the default that a manifest without a usable annotation gets.
func TestFailOpen(t *testing.T) {
	open := delivery.NewReader()
	open.FailOpen = true
	for value, want := range map[string]bool{"": true, "true": true, "false": false, "0": false, "yes": true} {
		text := with("T")
		if value != "" {
			text = with("T", enov1.AnnotationFailOpen, value)
		}
		if r, err := open.Read(manifest(t, text), nil); err != nil || r.FailOpen != want {
			t.Errorf("annotation %q: %v, %v, want %v", value, r.FailOpen, err, want)
		}
	}
}

func TestReady(t *testing.T) {
	now := time.Unix(1_000_000, 0).UTC()
	const live = `{spec: {size: 1}, status: {conditions: [{type: A, status: "False"}, {type: B, status: "True", lastTransitionTime: "1970-01-02T00:00:00Z"}, {type: C, status: "True", lastTransitionTime: "1970-01-03T00:00:00Z"}]}}`
	day := func(n int) time.Time { return time.Date(1970, 1, n, 0, 0, 0, 0, time.UTC) }
	of := func(kind string) string { return "self.status.conditions.filter(c, c.type == '" + kind + "')" }
	cases := map[string]struct {
		reason      string
		expressions []string
		want        time.Time
		no          bool
	}{
		"None":        {reason: "There is no check.", want: now},
		"True":        {reason: "It is true now.", expressions: []string{"", "self.spec.size == 1"}, want: now},
		"False":       {reason: "It is not.", expressions: []string{"", "self.spec.size == 2"}, no: true},
		"Condition":   {reason: "A condition knows since when.", expressions: []string{"", of("B")}, want: day(2)},
		"OneItem":     {reason: "So does a single one.", expressions: []string{"", of("B") + "[0]"}, want: day(2)},
		"NotMet":      {reason: "A condition that is False is not met.", expressions: []string{"", of("A")}, no: true},
		"Unknown":     {reason: "Nor is one that is not there.", expressions: []string{"", of("X")}, no: true},
		"All":         {reason: "The last one counts.", expressions: []string{"-b", of("B"), "-c", of("C")}, want: day(3)},
		"NotAll":      {reason: "All must be met.", expressions: []string{"-a", of("A"), "-c", of("C")}, no: true},
		"Absent":      {reason: "What is not there yet is not ready.", expressions: []string{"", "self.status.phase == 'Done'"}, no: true},
		"Composition": {reason: "The composition is known, too.", expressions: []string{"", "composition.metadata.labels.stage == 'done' && composition.metadata.name == 'app' && composition.metadata.deletionTimestamp == null"}, want: now},
		"Early":       {reason: "It has no such annotation yet.", expressions: []string{"", "composition.metadata.annotations.approved == 'yes'"}, no: true},
		"Number":      {reason: "A number is no answer.", expressions: []string{"", "1"}, no: true},
		"Costly":      {reason: "An expression cannot run for ever.", no: true, expressions: []string{"", "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var annotations []string
			for pair := range slices.Chunk(tc.expressions, 2) {
				annotations = append(annotations, enov1.AnnotationReadiness+pair[0], pair[1])
			}
			r := read(t, with("T", annotations...))
			since, ok, _ := r.Ready(&unstructured.Unstructured{Object: object(t, live)}, &metav1.ObjectMeta{Name: "app", Labels: map[string]string{"stage": "done"}}, now)
			if ok == tc.no || !since.Equal(tc.want) {
				t.Errorf("%s\nReady(...): %s, %t", tc.reason, since, ok)
			}
		})
	}
	crd := read(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ts.x}, spec: {group: x, names: {kind: T}}}`)
	if _, ok, _ := crd.Ready(&unstructured.Unstructured{Object: object(t, live)}, nil, now); ok || !crd.Watched() {
		t.Error("a CRD that is not served is ready")
	}
	if _, ok, _ := crd.Ready(&unstructured.Unstructured{Object: object(t, `{status: {conditions: [{type: Established, status: "True"}]}}`)}, nil, now); !ok {
		t.Error("a CRD that is served is not ready")
	}
}

func TestDecide(t *testing.T) {
	ours, theirs := object(t, with("T")), object(t, with("T"))
	metadata := ours["metadata"].(map[string]any)
	metadata["managedFields"] = []any{map[string]any{"manager": "eno", "operation": "Apply"}}
	there := delivery.Situation{Looked: true, Live: &unstructured.Unstructured{Object: ours}}
	foreign := delivery.Situation{Looked: true, Live: &unstructured.Unstructured{Object: theirs}}
	going := delivery.Situation{Looked: true, Live: there.Live.DeepCopy()}
	going.Live.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	absent := delivery.Situation{Looked: true}
	blind := delivery.Situation{}
	deleting := func(s delivery.Situation) delivery.Situation {
		s.Deleting = true

		return s
	}
	only := func(managers ...string) delivery.Situation {
		live := foreign.Live.DeepCopy()
		var entries []metav1.ManagedFieldsEntry
		for _, m := range managers {
			entries = append(entries, metav1.ManagedFieldsEntry{Manager: m, Operation: metav1.ManagedFieldsOperationApply})
		}
		live.SetManagedFields(entries)

		return delivery.Situation{Looked: true, Live: live}
	}
	claimed := func(by string) delivery.Situation { return only("eno", by) }
	as := func(manager string, s delivery.Situation) delivery.Situation {
		s.Manager = manager

		return s
	}
	const patch = `{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {name: a}, patch: {apiVersion: v1, kind: Pod, ops: [{op: add, path: /metadata/%s, value: x}]}}`
	cases := map[string]struct {
		reason, text string
		tombstone    bool
		situation    delivery.Situation
		want         delivery.Verb
		foreground   bool
	}{
		"Plain":           {reason: "An apply needs no look.", text: with("T"), situation: blind, want: delivery.Apply},
		"InSync":          {reason: "It was not changed.", text: with("T"), situation: delivery.Situation{InSync: true}, want: delivery.Nothing},
		"Disabled":        {reason: "It is left alone.", text: with("T", enov1.AnnotationDisableReconciliation, "true"), situation: blind, want: delivery.Leave},
		"Going":           {reason: "Who writes to an object that goes writes for nothing.", text: with("T"), situation: going, want: delivery.Wait},
		"GoingUnseen":     {reason: "Also if only that is known.", text: with("T"), situation: delivery.Situation{Going: true}, want: delivery.Wait},
		"BareBlind":       {reason: "Nothing in the object would say that it was delivered, so it is created.", text: "{apiVersion: v1, kind: T, metadata: {name: a, namespace: n}}", situation: blind, want: delivery.Look},
		"Bare":            {reason: "It fails if another client has created it.", text: "{apiVersion: v1, kind: T, metadata: {name: a, namespace: n}}", situation: absent, want: delivery.Create},
		"BareThere":       {reason: "There is nothing to apply.", text: "{apiVersion: v1, kind: T, metadata: {name: a, namespace: n}}", situation: foreign, want: delivery.Nothing},
		"BareNow":         {reason: "Fields that were set before are removed.", text: "{apiVersion: v1, kind: T, metadata: {name: a, namespace: n}}", situation: there, want: delivery.Apply},
		"BareSettings":    {reason: "Settings are not fields.", text: `{apiVersion: v1, kind: T, metadata: {name: a, annotations: {eno.azure.io/readiness-group: "1"}}}`, situation: blind, want: delivery.Look},
		"Labeled":         {reason: "A label is a field.", text: "{apiVersion: v1, kind: T, metadata: {name: a, labels: {a: b}}}", situation: blind, want: delivery.Apply},
		"Claimed":         {reason: "Another control plane has applied it, too.", text: with("T"), tombstone: true, situation: claimed("eno-edge"), want: delivery.Leave},
		"ClaimedDeleting": {reason: "So it is when the composition is deleted.", text: with("T"), situation: deleting(claimed("eno-edge")), want: delivery.Leave},
		"NotClaimed":      {reason: "Other clients do not deliver.", text: with("T"), tombstone: true, situation: claimed("enough"), want: delivery.Delete},
		"OtherName":       {reason: "The default name is that of another control plane here.", text: with("T"), tombstone: true, situation: as("eno-edge", there), want: delivery.Leave},
		"OwnName":         {reason: "It was delivered under this name.", text: with("T"), tombstone: true, situation: as("eno-edge", only("eno-edge")), want: delivery.Delete},
		"OwnNameClaimed":  {reason: "And by the one with the default name.", text: with("T"), tombstone: true, situation: as("eno-edge", claimed("eno-edge")), want: delivery.Leave},
		"OnceBlind":       {reason: "It must be known whether it is there.", text: with("T", enov1.AnnotationDisableUpdates, "true"), situation: blind, want: delivery.Look},
		"Once":            {reason: "It is made.", text: with("T", enov1.AnnotationDisableUpdates, "true"), situation: absent, want: delivery.Create},
		"OnceThere":       {reason: "It is not changed.", text: with("T", enov1.AnnotationDisableUpdates, "true"), situation: foreign, want: delivery.Nothing},
		"Replace":         {reason: "It is another.", text: strings.Replace(with("T", enov1.AnnotationReplace, "true"), "x: why", "x: z", 1), situation: there, want: delivery.Replace},
		"ReplaceSame":     {reason: "It is the same.", text: with("T", enov1.AnnotationReplace, "true"), situation: there, want: delivery.Nothing},
		"ReplaceAbsent":   {reason: "It is not there.", text: with("T", enov1.AnnotationReplace, "true"), situation: absent, want: delivery.Create},
		"Patch":           {reason: "Only the server knows what it does.", text: fmt.Sprintf(patch, "labels"), situation: blind, want: delivery.Patch},
		"PatchBusy":       {reason: "The object is read first: the change may be about something else.", text: fmt.Sprintf(patch, "labels"), situation: delivery.Situation{Drifted: true}, want: delivery.Look},
		"PatchHolds":      {reason: "The operations would change nothing.", text: fmt.Sprintf(patch, "labels"), situation: delivery.Situation{Drifted: true, Looked: true, Live: there.Live, Patched: true}, want: delivery.Nothing},
		"PatchUndone":     {reason: "They would.", text: fmt.Sprintf(patch, "labels"), situation: delivery.Situation{Drifted: true, Looked: true, Live: there.Live}, want: delivery.Patch},
		"PatchMissing":    {reason: "The server reports that the object is gone.", text: fmt.Sprintf(patch, "labels"), situation: delivery.Situation{Drifted: true, Looked: true}, want: delivery.Patch},
		"PatchDeletes":    {reason: "It must be known whom.", text: fmt.Sprintf(patch, "deletionTimestamp"), situation: blind, want: delivery.Look},
		"PatchDeletesIt":  {reason: "Whichever client created it.", text: fmt.Sprintf(patch, "deletionTimestamp"), situation: foreign, want: delivery.Delete, foreground: true},
		"PatchDeleted":    {reason: "It is done.", text: fmt.Sprintf(patch, "deletionTimestamp"), situation: absent, want: delivery.Nothing},
		"PatchTombstone":  {reason: "A patch is not taken back.", text: fmt.Sprintf(patch, "labels"), situation: deleting(blind), want: delivery.Leave},
		"Tombstone":       {reason: "It must be known whose it is.", text: with("T"), tombstone: true, situation: blind, want: delivery.Look},
		"TombstoneOurs":   {reason: "It goes.", text: with("T"), tombstone: true, situation: there, want: delivery.Delete},
		"TombstoneTheirs": {reason: "Not that of another client.", text: with("T"), tombstone: true, situation: foreign, want: delivery.Leave},
		"TombstoneGone":   {reason: "It is gone.", text: with("T"), tombstone: true, situation: absent, want: delivery.Nothing},
		"TombstoneStolen": {reason: "It was delivered, and another field manager has taken every field of it.", text: with("T"), tombstone: true, situation: delivery.Situation{Looked: true, Live: foreign.Live, Ours: true}, want: delivery.Delete},
		"TombstoneTaken":  {reason: "It has moved to another composition.", text: with("T"), tombstone: true, situation: delivery.Situation{Looked: true, Live: there.Live, Taken: true}, want: delivery.Leave},
		"Deleting":        {reason: "All go with the composition.", text: with("T"), situation: deleting(there), want: delivery.Delete},
		"DeletingInSync":  {reason: "Even if it was not changed.", text: with("T"), situation: delivery.Situation{Deleting: true, InSync: true}, want: delivery.Look},
		"Orphan":          {reason: "It stays.", text: with("T", enov1.AnnotationDeletionStrategy, "orphan"), situation: deleting(there), want: delivery.Leave},
		"Abandoned":       {reason: "All stay.", text: with("T"), situation: delivery.Situation{Deleting: true, Abandoned: true}, want: delivery.Leave},
		"Pruned":          {reason: "It stays only with the composition.", text: with("T", enov1.AnnotationDeletionStrategy, "orphan"), situation: there, tombstone: true, want: delivery.Delete},
		"Foreground":      {reason: "It is waited for.", text: with("T", enov1.AnnotationDeletionStrategy, "foreground"), situation: deleting(there), want: delivery.Delete, foreground: true},
		"ForegroundGoing": {reason: "It is waited for.", text: with("T", enov1.AnnotationDeletionStrategy, "foreground"), situation: deleting(going), want: delivery.Wait},
		"BackgroundGoing": {reason: "It is not.", text: with("T"), situation: deleting(going), want: delivery.Nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := read(t, tc.text)
			r.Tombstone = tc.tombstone
			got := delivery.Decide(r, tc.situation)
			if got.Verb != tc.want || got.Foreground != tc.foreground || got.Verb != delivery.Look && got.Reason == "" {
				t.Errorf("%s\nDecide(...): %+v, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDrops(t *testing.T) {
	cases := map[string]struct {
		reason, before, now string
		want                bool
	}{
		"Same":       {reason: "Nothing changes.", before: "{a: {b: [1, {name: x, v: 1}]}}", now: "{a: {b: [1, {name: x, v: 1}]}}"},
		"Value":      {reason: "Another value is named all the same.", before: "{a: 1}", now: "{a: 2}"},
		"More":       {reason: "More is not less.", before: "{a: [{name: x}]}", now: "{a: [{name: y}, {name: x, v: 1}], b: 1}"},
		"Field":      {reason: "A field goes.", before: "{a: {b: 1, c: 1}}", now: "{a: {b: 1}}", want: true},
		"Item":       {reason: "An item goes.", before: "{a: [{name: x}, {name: y}]}", now: "{a: [{name: x}, {name: z}]}", want: true},
		"OfItem":     {reason: "A field of an item goes.", before: "{a: [{name: x, v: 1}]}", now: "{a: [{name: x}]}", want: true},
		"Scalar":     {reason: "A value of a set goes.", before: "{a: [x, y]}", now: "{a: [x]}", want: true},
		"Nameless":   {reason: "It cannot be known which it was.", before: "{a: [{port: 1}]}", now: "{a: [{port: 2}]}", want: true},
		"OtherShape": {reason: "All of it goes.", before: "{a: {b: 1}}", now: "{a: 1}", want: true},
		"NoList":     {reason: "All of it goes.", before: "{a: [1]}", now: "{a: 1}", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := delivery.Drops(object(t, tc.before), object(t, tc.now)); got != tc.want {
				t.Errorf("%s\nDrops(...): %t", tc.reason, got)
			}
		})
	}
}

func TestDamper(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var d delivery.Damper
	correct := func(n int, every time.Duration) {
		for range n {
			now = now.Add(every)
			d.Corrected(now)
		}
	}
	correct(100, 20*time.Second)
	if d.Hold(now) != 0 {
		t.Fatal("three corrections in a minute are no fight")
	}
	now = now.Add(time.Minute)
	correct(d.Rounds(), time.Second)
	if got := d.Hold(now); got != 10*time.Second {
		t.Fatalf("after a fight it is left alone for %s", got)
	}
	var pauses []time.Duration
	for range 7 {
		now = now.Add(d.Hold(now) + time.Second)
		d.Corrected(now)
		pauses = append(pauses, d.Hold(now)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{20, 40, 80, 160, 300, 300, 300}, pauses); diff != "" {
		t.Errorf("pauses: -want, +got:\n%s", diff)
	}
	now = now.Add(time.Hour)
	correct(d.Rounds()-1, time.Second)
	if d.Hold(now) != 0 {
		t.Error("after an hour of peace it is still held against them")
	}
}

// slowOpen reports whether a resource may be worked on, by comparing it with every other one.
func slowOpen(all []*delivery.Resource, deleting bool, done map[int]bool, i int) bool {
	group := func(r *delivery.Resource) (int, bool) {
		if deleting {
			if r.DeletionGroup == nil {
				return 0, false
			}

			return *r.DeletionGroup, true
		}
		least := r.ReadinessGroup
		for _, o := range all {
			if r.Defines.Kind != "" && !r.Tombstone && !o.Tombstone && o.GVK.GroupKind() == r.Defines {
				least = min(least, o.ReadinessGroup)
			}
		}

		return least, !r.Tombstone || r.Prune == enov1.PruneWithGroup
	}
	mine, ordered := group(all[i])
	for j, o := range all {
		if g, ok := group(o); ordered && ok && g < mine && !done[j] && (deleting || !o.Tombstone) {
			return false
		}
		if !deleting && all[i].Tombstone && all[i].Prune == enov1.PruneLast && !o.Tombstone && !done[j] {
			return false
		}
		if !deleting && !all[i].Tombstone && !o.Tombstone && o.Defines.Kind != "" && o.Defines == all[i].GVK.GroupKind() && !done[j] {
			return false
		}
	}

	return true
}

func TestSchedule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		var all []*delivery.Resource
		for i := range r.IntN(12) {
			annotations := []string{enov1.AnnotationReadinessGroup, strconv.Itoa(r.IntN(4) - 1)}
			if r.IntN(2) == 0 {
				annotations = append(annotations, enov1.AnnotationDeletionGroup, strconv.Itoa(r.IntN(3)))
			}
			one := read(t, with(fmt.Sprintf("T%d", r.IntN(3)), annotations...))
			if i < 2 && r.IntN(2) == 0 {
				one.Defines = read(t, with(fmt.Sprintf("T%d", i))).GVK.GroupKind()
				one.GVK.Kind = "CustomResourceDefinition"
			}
			one.Name = strconv.Itoa(i)
			one.Tombstone = r.IntN(5) == 0
			one.Prune = []string{enov1.PruneLast, enov1.PruneWithGroup, enov1.PruneFirst}[r.IntN(3)]
			all = append(all, one)
		}
		deleting := r.IntN(2) == 0
		s := delivery.NewSchedule(all, deleting)
		done, open := map[int]bool{}, map[int]bool{}
		check := func(opened []int) {
			for _, i := range opened {
				if open[i] {
					t.Fatalf("round %d: %d was opened twice", round, i)
				}
				open[i] = true
			}
			for i := range all {
				want := slowOpen(all, deleting, done, i)
				if s.Open(i) != want || open[i] != want {
					t.Fatalf("round %d: Open(%d): %t, returned %t, want %t", round, i, s.Open(i), open[i], want)
				}
			}
		}
		var first []int
		for i := range all {
			if s.Open(i) {
				first = append(first, i)
			}
		}
		check(first)
		for len(done) < len(all) {
			var next []int
			for i := range all {
				if open[i] && !done[i] {
					next = append(next, i)
				}
			}
			if len(next) == 0 {
				t.Fatalf("round %d: nothing is open, and %d of %d are done", round, len(done), len(all))
			}
			i := next[r.IntN(len(next))]
			done[i] = true
			check(append(s.Done(i), s.Applied(i)...))
			check(append(s.Done(i), s.Applied(i)...)) // twice is once
		}
	}
}

// A schedule of many costs little for each.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		all := make([]*delivery.Resource, n)
		for i := range all {
			all[i] = &delivery.Resource{Identity: delivery.Identity{Name: strconv.Itoa(i)}, Settings: delivery.Settings{ReadinessGroup: i % 10}}
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				s := delivery.NewSchedule(all, false)
				for g := range 10 {
					for i := g; i < n; i += 10 {
						s.Done(i)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/resource")
		})
	}
}

func TestFilter(t *testing.T) {
	about := &metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"team": "a"}}
	cases := map[string]struct {
		reason, expression string
		admits, fails      bool
	}{
		"Holds":       {reason: "It is of that kind.", expression: "self.kind == 'T'", admits: true},
		"Not":         {reason: "It is not.", expression: "self.kind != 'T'"},
		"Settings":    {reason: "The manifest is known as it is written.", expression: "self.metadata.annotations['eno.azure.io/replace'] == 'true'", admits: true},
		"Composition": {reason: "So is its composition.", expression: "composition.metadata.labels.team == 'a' && composition.metadata.namespace == 'shop'", admits: true},
		"Absent":      {reason: "There is no telling.", expression: "self.spec.absent == 1", fails: true},
		"Number":      {reason: "A number is no answer.", expression: "1", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := delivery.NewFilter(tc.expression)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(object(t, with("T", enov1.AnnotationReplace, "true")))
			if err != nil {
				t.Fatal(err)
			}
			admits, err := f.Admits(string(data), about)
			if admits != tc.admits || (err != nil) != tc.fails {
				t.Errorf("%s\nAdmits(...): %t, %v", tc.reason, admits, err)
			}
		})
	}
	if _, err := delivery.NewFilter("self.kind =="); err == nil {
		t.Error("half an expression is a filter")
	}
}

func TestValidateManager(t *testing.T) {
	cases := map[string]struct {
		reason, name string
		valid        bool
	}{
		"Default": {"It is that of Eno.", "eno", true},
		"Other":   {"It begins as the default does.", "eno-edge.1", true},
		"Foreign": {"Other deliveries would not know it.", "arbor", false},
		"Similar": {"Nor that.", "enough", false},
		"Nothing": {"There must be something to tell them apart.", "eno-", false},
		"Upper":   {"Names are those of labels.", "eno-Edge", false},
		"Long":    {"The server accepts 128 characters.", "eno-" + strings.Repeat("a", 125), false},
		"Empty":   {"A value that was not filled in must not change anything.", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := delivery.ValidateManager(tc.name); (err == nil) != tc.valid {
				t.Errorf("%s\ngot %v, want valid: %t", tc.reason, err, tc.valid)
			}
		})
	}
}
