package uninstall

import (
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	probeTime = time.Millisecond // no manager adds a finalizer again
	m.Run()
}
