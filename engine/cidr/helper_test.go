package cidr_test

import (
	"net/netip"
	"testing"

	"github.com/arbor-control/arbor/engine/cidr"
)

func mustPool(t testing.TB, prefix string, taken ...string) *cidr.Pool {
	t.Helper()
	p, err := cidr.New(netip.MustParsePrefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range taken {
		if err := p.AllocateExact(netip.MustParsePrefix(b)); err != nil {
			t.Fatal(err)
		}
	}

	return p
}
