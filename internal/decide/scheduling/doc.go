// Package scheduling reads a PodGroup and its pods as a gang that can be
// placed, and says afterwards what became of it:
//
//	PodGroup ─┐                        ┌── Gang ── gang.Place ── Decision ─┐
//	          ├── Read ────────────────┤                                   ├── Show ── status
//	pods ─────┘   (GroupOf: who joins) └── Refusal ────────────────────────┘
//
// A group that cannot be read as it is written is refused as a whole: none of
// its pods are placed, and everybody is told what to mend. It is never read as
// a weaker gang.
package scheduling
