package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
)

// object is one with these entries, and a value.
func object(t *testing.T, value string, entries ...string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": %q, "managedFields": [%s]}, "data": {"a": %q}}`, value, strings.Join(entries, ","), value)
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}

	return o
}

func entry(manager, version string) string {
	return fmt.Sprintf(`{"manager": %q, "operation": "Update", "apiVersion": %q, "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}`, manager, version)
}

// TestVerify is about answers that the server gives only if something is wrong,
// so that only code can show that they are seen.
func TestVerify(t *testing.T) {
	before := object(t, "x", entry("old", "v1"), entry("beta", "v1beta1"))
	sent, err := fields.Read(object(t, "x", entry("new", "v1"), entry("beta", "v1beta1")).Object)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		after  *unstructured.Unstructured
		want   Reason
	}{
		"Fine":        {reason: "The entries are those that were sent.", after: object(t, "x", entry("new", "v1"), entry("beta", "v1beta1"))},
		"OldVersion":  {reason: "The server drops what is in a version that it does not know.", after: object(t, "x", entry("new", "v1"))},
		"Ignored":     {reason: "One bad entry has the server ignore all of them, and say 200.", after: before, want: Ignored},
		"Untracked":   {reason: "The object is too large for entries.", after: object(t, "x"), want: Untracked},
		"Altered":     {reason: "A webhook has its own idea of entries.", after: object(t, "x", entry("third", "v1")), want: Altered},
		"Unreadable":  {reason: "They cannot even be read.", after: object(t, "x", `{"manager": "x", "fieldsV1": 1}`), want: Altered},
		"Mutated":     {reason: "Admission changes the object.", after: object(t, "y", entry("new", "v1"), entry("beta", "v1beta1")), want: Mutated},
		"LostCurrent": {reason: "An entry in the version of the object must not be lost.", after: object(t, "x", entry("beta", "v1beta1")), want: Altered},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := verify(before, tc.after, sent)
			if got := ReasonOf(err); got != tc.want || err == nil != (tc.want == "") {
				t.Errorf("%s\nverify(...): %v", tc.reason, err)
			}
		})
	}
}

func TestDamper(t *testing.T) {
	now := time.Unix(0, 0)
	d := &damper{rounds: 2, memory: time.Hour, now: func() time.Time { return now }, fights: map[fight]round{}}
	moves := []fields.Move{{From: fields.Identity{Manager: "b"}}, {From: fields.Identity{Manager: "a"}}, {From: fields.Identity{Manager: "b"}}, {}}
	scopes := []fields.Scope{fields.MustParseScope("spec")}
	for range 2 {
		if got := d.contested("1", scopes, moves); len(got) > 0 {
			t.Errorf("%q are said to fight", got)
		}
		d.moved("1", scopes, moves)
	}
	if diff := cmp.Diff([]string{"a", "b"}, d.contested("1", scopes, moves)); diff != "" {
		t.Errorf("contested(...): -want, +got:\n%s", diff)
	}
	if got := d.contested("2", scopes, moves); len(got) > 0 {
		t.Errorf("%q are said to fight over another object", got)
	}
	now = now.Add(time.Hour)
	if got := d.contested("1", scopes, moves); len(got) > 0 {
		t.Errorf("%q are said to fight after an hour of peace", got)
	}
	d.moved("1", scopes, moves)
	if got := d.contested("1", scopes, moves); len(got) > 0 {
		t.Errorf("%q are said to fight in the first round of another hour", got)
	}
	for i := range maxFights {
		now = now.Add(time.Millisecond)
		d.moved("1", []fields.Scope{fields.MustParseScope(fmt.Sprintf("spec.f%d", i))}, moves)
		if len(d.fights) > maxFights {
			t.Fatalf("%d fights are remembered", len(d.fights))
		}
	}
}

// TestMetrics has managers of any number of names, which must not become as
// many series.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewMetrics(registry)
	const names = 200
	for i := range names {
		m.found("Deployment", []string{fmt.Sprintf("m%d", i)})
		m.found(fmt.Sprintf("Kind%d", i), []string{"m0"})
	}
	if n := testutil.CollectAndCount(m.split); n != maxManagers+2 {
		t.Errorf("there are %d series, want %d", n, maxManagers+2)
	}
	if got := testutil.ToFloat64(m.split.WithLabelValues("Deployment", other)); got != names-maxManagers {
		t.Errorf("%v are counted as others", got)
	}
	if got := testutil.ToFloat64(m.split.WithLabelValues(other, "m0")); got != names {
		t.Errorf("%v are of other kinds", got)
	}
	m.ended(true, nil, time.Second)
	m.ended(false, nil, time.Second)
	m.ended(true, errors.New("failed"), time.Second)
	const want = `
# HELP eno_ownership_migrations_total Migrations of field ownership by status (success, failure, skipped).
# TYPE eno_ownership_migrations_total counter
eno_ownership_migrations_total{status="failure"} 1
eno_ownership_migrations_total{status="skipped"} 1
eno_ownership_migrations_total{status="success"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "eno_ownership_migrations_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "eno_ownership_migration_duration_seconds"); err != nil || n != 1 {
		t.Errorf("there are %d durations: %v", n, err)
	}
}

// TestReport counts each manager once, in however many scopes it is, and only the kinds that are
// distinguished.
func TestReport(t *testing.T) {
	metrics := NewMetrics(prometheus.NewPedanticRegistry())
	m := New(nil, Options{Metrics: metrics})
	p := &Plan{Status: []Status{{OtherManagers: []string{"a", "b"}}, {OtherManagers: []string{"b"}}, {}}}
	m.report(Request{Desired: identify("apps/v1", "Deployment", "n", "a")}, p)
	m.report(Request{Object: identify("v1", "ConfigMap", "n", "a")}, p)
	m.report(Request{Object: identify("v1", "ConfigMap", "n", "b")}, &Plan{Skip: Absent})
	for _, kind := range []string{"Deployment", other} {
		for _, name := range []string{"a", "b"} {
			if got := testutil.ToFloat64(metrics.split.WithLabelValues(kind, name)); got != 1 {
				t.Errorf("%s of %s was counted %v times", name, kind, got)
			}
		}
	}
	if n := testutil.CollectAndCount(metrics.split); n != 4 {
		t.Errorf("there are %d series", n)
	}
	New(nil, Options{}).report(Request{Object: identify("v1", "ConfigMap", "n", "a")}, p) // a nil Metrics counts nothing
}

func TestDefaultScopes(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
		bad                bool
	}{
		"Deployment": {reason: "A workload has init containers.", text: `{"apiVersion": "apps/v1", "kind": "Deployment"}`, want: "spec.template.spec.initContainers"},
		"Job":        {reason: "So has a job.", text: `{"apiVersion": "batch/v1", "kind": "Job"}`, want: "spec.template.spec.initContainers"},
		"CronJob":    {reason: "Its template is further down.", text: `{"apiVersion": "batch/v1", "kind": "CronJob"}`, want: "spec.jobTemplate.spec.template.spec.initContainers"},
		"Namesake":   {reason: "Another group's kind of that name is another kind.", text: `{"apiVersion": "example.com/v1", "kind": "Deployment"}`},
		"Annotation": {
			reason: "An annotation says otherwise, of any kind.", want: "data.a",
			text: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {"eno.azure.io/migrate-ownership": "data.a"}}}`,
		},
		"Several": {
			reason: "It may have several, on lines or between semicolons.", want: "data.a data.b;c data.d",
			text: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {"eno.azure.io/migrate-ownership": "data.a; data[\"b;c\"]\n data.d\n"}}}`,
		},
		"Blank": {
			reason: "A blank one is none.", want: "spec.template.spec.initContainers",
			text: `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"eno.azure.io/migrate-ownership": " ;"}}}`,
		},
		"Denied": {
			reason: "Some parts are never moved.", bad: true,
			text: `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"eno.azure.io/migrate-ownership": "spec; status"}}}`,
		},
		"Unreadable": {
			reason: "One that cannot be read is an error, not the default.", bad: true,
			text: `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {"eno.azure.io/migrate-ownership": "spec["}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(tc.text), &o.Object); err != nil {
				t.Fatal(err)
			}
			scopes, err := DefaultScopes(o)
			var got []string
			for _, s := range scopes {
				got = append(got, s.String())
			}
			if strings.Join(got, " ") != tc.want || (err != nil) != tc.bad {
				t.Errorf("%s\nDefaultScopes(...): %q, %v", tc.reason, got, err)
			}
		})
	}
}
