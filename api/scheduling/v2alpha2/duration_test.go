package v2alpha2_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

func TestDuration(t *testing.T) {
	cases := map[string]struct {
		reason string
		json   string
		want   v2alpha2.Duration
		back   string
		text   string
	}{
		"Seconds":  {"One unit is enough.", `"30s"`, v2alpha2.Duration{Duration: 30 * time.Second}, `"30s"`, "30s"},
		"Units":    {"Units add up.", `"1h30m"`, v2alpha2.Duration{Duration: 90 * time.Minute}, `"1h30m0s"`, "1h30m0s"},
		"Fraction": {"Fractions are allowed.", `"1.5s"`, v2alpha2.Duration{Duration: 1500 * time.Millisecond}, `"1.5s"`, "1.5s"},
		"Micro":    {"Both spellings of micro are allowed.", `"1us1µs"`, v2alpha2.Duration{Duration: 2 * time.Microsecond}, `"2µs"`, "2µs"},
		"Negative": {"A negative value means forever for some fields.", `"-1s"`, v2alpha2.Duration{Duration: -time.Second}, `"-1s"`, "-1s"},
		"Zero":     {"Zero needs no unit, and is not absent.", `"0"`, v2alpha2.Duration{}, `"0s"`, "0s"},
		"Word":     {"A word is kept.", `"abc"`, v2alpha2.Duration{Invalid: `"abc"`}, `"abc"`, "abc"},
		"NoUnit":   {"A number needs a unit.", `"30"`, v2alpha2.Duration{Invalid: `"30"`}, `"30"`, "30"},
		"Days":     {"Go has no days.", `"1d"`, v2alpha2.Duration{Invalid: `"1d"`}, `"1d"`, "1d"},
		"Empty":    {"Empty text is not zero.", `""`, v2alpha2.Duration{Invalid: `""`}, `""`, ""},
		"Overflow": {"A value that is too large is not cut.", `"9999999h"`, v2alpha2.Duration{Invalid: `"9999999h"`}, `"9999999h"`, "9999999h"},
		"Number":   {"The CRD of another scheduler may allow other types.", `30`, v2alpha2.Duration{Invalid: `30`}, `30`, "30"},
		"Object":   {"Even objects.", `{"seconds":3}`, v2alpha2.Duration{Invalid: `{"seconds":3}`}, `{"seconds":3}`, `{"seconds":3}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// The previous value must not remain.
			got := v2alpha2.Duration{Duration: time.Hour, Invalid: "5"}
			if err := json.Unmarshal([]byte(tc.json), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nUnmarshal: -want, +got:\n%s", tc.reason, diff)
			}
			if value, ok := got.Get(); value != tc.want.Duration || ok != (tc.want.Invalid == "") {
				t.Errorf("%s\nGet() = %s, %t", tc.reason, value, ok)
			}
			if back, err := json.Marshal(got); err != nil || string(back) != tc.back {
				t.Errorf("%s\nMarshal = %s, %v, want %s", tc.reason, back, err, tc.back)
			}
			if got.String() != tc.text {
				t.Errorf("%s\nString() = %q, want %q", tc.reason, got.String(), tc.text)
			}
		})
	}
}

func TestDurationAbsent(t *testing.T) {
	var d *v2alpha2.Duration
	if value, ok := d.Get(); value != 0 || ok {
		t.Errorf("Get() of an absent value = %s, %t", value, ok)
	}
	spec := v2alpha2.PodGroupSpec{}
	if err := json.Unmarshal([]byte(`{"preemptionDelay":null}`), &spec); err != nil || spec.PreemptionDelay != nil {
		t.Errorf("null is %v, %v, want absent", spec.PreemptionDelay, err)
	}
}

// TestListWithInvalidDuration decodes a list with the decoder of the clients
// behind informers: an invalid object must not hide the valid one.
func TestListWithInvalidDuration(t *testing.T) {
	const list = `{"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroupList","metadata":{"resourceVersion":"7"},"items":[
{"metadata":{"name":"bad"},"spec":{"minMember":2,"preemptionDelay":"abc","stalenessGracePeriod":5}},
{"metadata":{"name":"good"},"spec":{"preemptionDelay":"30s"}}]}`
	scheme := runtime.NewScheme()
	if err := v2alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	negotiator := runtime.NewClientNegotiator(serializer.NewCodecFactory(scheme).WithoutConversion(), v2alpha2.GroupVersion)
	decoder, err := negotiator.Decoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := &v2alpha2.PodGroupList{}
	if _, _, err := decoder.Decode([]byte(list), nil, got); err != nil {
		t.Fatalf("the list cannot be decoded: %v", err)
	}
	want := []v2alpha2.PodGroupSpec{
		{MinMember: new(int32(2)), PreemptionDelay: &v2alpha2.Duration{Invalid: `"abc"`}, StalenessGracePeriod: &v2alpha2.Duration{Invalid: `5`}},
		{PreemptionDelay: &v2alpha2.Duration{Duration: 30 * time.Second}},
	}
	var specs []v2alpha2.PodGroupSpec
	for _, pg := range got.Items {
		specs = append(specs, pg.Spec)
	}
	if diff := cmp.Diff(want, specs); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestUnstructuredDuration converts as clients for unstructured objects do.
func TestUnstructuredDuration(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"preemptionDelay": "abc", "stalenessGracePeriod": int64(5)}}
	pg := &v2alpha2.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, pg); err != nil {
		t.Fatal(err)
	}
	back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pg)
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := back["spec"].(map[string]any)
	if spec["preemptionDelay"] != "abc" || spec["stalenessGracePeriod"] != int64(5) {
		t.Errorf("the spec is %v", spec)
	}
}

// FuzzDuration decodes any JSON, and loses nothing on the way back.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{`"30s"`, `"-1.5h"`, `"abc"`, `""`, `5`, `{"a":[1,"<"]}`, `null`, ` "1s" `, `"\u0031s"`, `"1µs"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			t.Skip("not JSON")
		}
		var first, second v2alpha2.Duration
		if err := json.Unmarshal(data, &first); err != nil {
			t.Fatalf("Unmarshal(%s): %v", data, err)
		}
		back, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("Marshal of %s: %v", data, err)
		}
		if err := json.Unmarshal(back, &second); err != nil {
			t.Fatalf("Unmarshal(%s): %v", back, err)
		}
		if a, b := first.String(), second.String(); first.Duration != second.Duration || (first.Invalid == "") != (second.Invalid == "") {
			t.Fatalf("%s became %q, then %q", data, a, b)
		}
		if first.Invalid != "" {
			checkSameJSON(t, data, back)
		}
	})
}

func checkSameJSON(t *testing.T, a, b []byte) {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return // a number that no float64 can hold
	}
	if diff := cmp.Diff(x, y); diff != "" {
		t.Fatalf("%s was written back as %s:\n%s", a, b, diff)
	}
}
