package cidr_test

import "testing"

// FuzzPool reads bytes as a choice of pool and then as what is done to it. At
// the end of the bytes it compares everything, and then releases everything.
func FuzzPool(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x04\x00\x00\x05\x01\x01\x06\x02\x03\x00"))
	f.Add([]byte("a pool of addresses, of which some are taken and some are freed"))
	f.Add([]byte{5, 2, 128, 8, 0, 1, 0, 1, 2, 90, 8, 1, 1, 1, 1, 0, 17, 3, 3, 0, 0, 1, 60})
	prefixes := []string{"10.0.0.0/24", "10.0.0.240/28", "10.0.0.0/8", "fd00::/120", "fd00::/48", "::/0", "10.0.0.1/32"}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			t.Skip("the twin is slow")
		}
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]

			return int(b) % n
		}
		p := newPair(t, prefixes[next(len(prefixes))])
		before := p.clone()
		for len(data) > 0 {
			p.run(t, p.draw(next))
		}
		p.compare(t, "all of it")
		for _, b := range p.clone().twin.taken {
			if err := p.pool.Release(b); err != nil {
				t.Fatal(err)
			}
		}
		pair{pool: p.pool, twin: before.twin}.compare(t, "releasing everything")
		before.compare(t, "changes to its clone")
		if n := p.pool.Slots(); n != 0 {
			t.Errorf("an empty pool has memory for %d blocks", n)
		}
	})
}
