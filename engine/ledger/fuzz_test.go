package ledger_test

import "testing"

// FuzzTwin lets the fuzzer choose what happens.
func FuzzTwin(f *testing.F) {
	f.Add([]byte("a ledger and its twin"))
	f.Add([]byte{0, 1, 1, 1, 11, 3, 0, 2, 1, 0, 0, 2, 2, 3, 5, 1, 1, 1, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := 0
		choose := func(n int) int {
			if at == len(data) {
				return 0
			}
			at++

			return int(data[at-1]) % n
		}
		newPair(map[string]int{}).run(t, min(len(data), 200), choose)
	})
}
