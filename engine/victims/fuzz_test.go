package victims_test

import "testing"

// FuzzSearch reads bytes as a cluster, gangs and a preemptor.
func FuzzSearch(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 3, 0, 3, 0, 3, 0, 3, 1, 1, 1, 7, 1, 2, 0, 0, 1, 1})
	f.Add([]byte("pods are evicted with all that leave with them or not at all"))
	f.Add([]byte{1, 2, 1, 7, 4, 0, 5, 2, 1, 1, 2, 0, 2, 4, 1, 1, 0, 2, 1, 1, 2, 0, 3, 1, 0, 6, 6, 5, 4, 3, 2, 1, 1, 2, 3, 1, 2, 0, 1, 2, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]

			return int(b) % n
		}
		draw(next, next(4) == 0).check(t)
	})
}
