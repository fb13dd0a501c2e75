package gang_test

import "testing"

// FuzzPlace reads bytes as a gang and a world. The first byte decides whether all pods are alike,
// so that the twin can be asked.
func FuzzPlace(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 3, 2, 0, 1, 2, 0, 1, 1, 4, 4, 4, 4})
	f.Add([]byte("a gang of pods that are placed together or not at all"))
	f.Add([]byte{0, 1, 7, 1, 2, 1, 0, 1, 3, 2, 1, 1, 9, 4, 0, 0, 1, 1, 2, 2, 3, 3, 2, 1, 4, 6, 2, 2, 2, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]

			return int(b) % n
		}
		alike := next(2) == 0
		s := draw(next, alike)
		d := s.check(t)
		if alike && d.Fits && !fits(s.tree, s.members, s.rules, s.room) {
			t.Fatalf("Place(%s) fits, the twin does not: %v", s, d.Places)
		}
		if d.Fits {
			if next := s.commit(d); !next.check(t).Fits {
				t.Fatalf("Place(%s) fits, and once it is placed it does not", s)
			}
		}
	})
}
