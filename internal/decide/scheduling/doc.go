// Package scheduling reads a PodGroup and its pods as a gang that can be placed, and reports the
// result in its status:
//
//	PodGroup ─┐                        ┌── Gang ── gang.Place ── Decision ─┐
//	          ├── Read ────────────────┤                                   ├── Show ── status
//	pods ─────┘   (GroupOf: who joins) └── Refusal ────────────────────────┘
//
// A group that is invalid is rejected as a whole: none of its pods are placed, and the group and
// its pods report what to fix. It is never read as a weaker gang.
package scheduling
