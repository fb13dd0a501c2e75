package event

import (
	"strings"
	"testing"
)

// The API server rejects an event whose text is too long.
func TestClip(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 3000), strings.Repeat("é", 3000), "x" + strings.Repeat("é", 3000)} {
		if got := Clip(text); len(got) > 1024 || !strings.HasSuffix(got, "...") || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := Clip("short"); got != "short" {
		t.Errorf("it became %q", got)
	}
}
