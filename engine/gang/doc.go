// Package gang decides where the pods of a gang go: all that are needed, or
// none.
//
// A gang is a tree ([podtree.Tree]) with minimums, and members that belong to
// its leaves. [Place] asks a [World] for a place for each member, one after
// the other, and gives places back when they turn out to lead nowhere:
//
//	the gang                      members         what is done
//
//	(min: both)                                   1. train: 4 places, or nothing
//	├── train    min 4            6 pods          2. serve: one of both replicas, whole
//	└── serve    min 1 of 2                       3. the other replica, whole or not at all
//	    ├── replica-a   min 3     3 pods          4. pods 5 and 6 of train
//	    └── replica-b   min 3     3 pods
//
// Steps 1 and 2 are the minimum. If one of them fails, everything is rolled back and the gang
// waits. Steps 3 and 4 are extras: they happen after the minimum of the whole tree, so that they
// never take the room that a minimum needs, and they never fail the gang.
//
// # Minimums
//
//   - A leaf needs minMember pods with a place. The default is 1, and 0 makes it
//     elastic. The one leaf of a gang without subgroups has the minMember of the
//     gang.
//   - A set, which is a subgroup with children or the gang itself, needs
//     minSubGroup of its direct children satisfied. The default is all.
//   - A set with a minMember needs, in addition, so many pods with a place
//     anywhere below it. [Rules] has a switch to ignore that.
//
// # Which children
//
// Where a set may choose, children that are satisfied already count as they are. Then those are
// tried that have some of their pods placed, and then the rest in list order. A child that cannot
// be satisfied is rolled back whole. If that order does not lead to enough children, those with the
// fewest missing pods are tried first, once, because a big child in front may have taken the room
// of two small ones.
//
// This is greedy on purpose: whether a gang fits at all is a bin packing problem. If Place reports
// that a gang fits, it fits; if it reports that it does not, the gang may, rarely, fit in another
// arrangement. With pods that are all alike, only the choice between optional subgroups to fill up
// a set's minMember can be wrong.
//
// # Cost
//
// No node of the tree is attempted more than maxAttempts times, so the number
// of questions to the World is linear in the members. Members of one shape are
// asked for once until the World changes. The time between the questions is
// linear too, unless sets with a minMember are nested: it then grows with how
// deep they are.
package gang
