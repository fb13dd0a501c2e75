package cli

import (
	"testing"

	"github.com/arbor-control/arbor/internal/cli/check"
)

func TestMain(m *testing.M) {
	check.SetDelay(0) // nothing is at work in memory
	m.Run()
}
