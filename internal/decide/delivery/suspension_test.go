package delivery_test

import (
	"testing"

	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestSuspension(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Both":     {"The command writes a time and a reason.", "2026-03-02T12:00:00Z maintenance of the database", "Suspended since 2026-03-02T12:00:00Z: maintenance of the database"},
		"Zone":     {"Times are shown in UTC.", "2026-03-02T13:00:00+01:00 moving", "Suspended since 2026-03-02T12:00:00Z: moving"},
		"NoTime":   {"A user may write the annotation by hand.", "maintenance until noon", "Suspended: maintenance until noon"},
		"NoReason": {"Also without a reason.", "2026-03-02T12:00:00Z", "Suspended since 2026-03-02T12:00:00Z: no reason given"},
		"Empty":    {"Also without a value.", "", "Suspended: no reason given"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := delivery.ParseSuspension(tc.text)
			if got.String() != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
			if again := delivery.ParseSuspension(got.Annotation()); !got.Since.IsZero() && again.String() != tc.want {
				t.Errorf("%s\nwritten and read again it is %q, want %q", tc.reason, again, tc.want)
			}
		})
	}
}
