// Package victims finds the pods to evict so that a gang fits.
//
// [Search] knows nodes and pods by number. Whether a pod fits on a node is asked
// of a [Cluster], a copy in which placements and evictions are tried and which
// is as before when the search ends. A plan is places for the members that the
// minimum of the gang needs, and the pods to evict for them:
//
//	compare sums of resources, see [Sums] ──── not enough ──▶ Insufficient
//	        │ may be enough
//	place the gang without all pods that may be evicted ───── no ──▶ Impossible
//	        │ yes
//	place it member by member: each takes a node where it
//	fits, or else the node where evictions cost least ─────── no ──▶ take the places from
//	        │ yes                                                   above, and evict what
//	        │ ◀──────────────────────────────────────────────────── is in the way there
//	let every victim stay that the places do not need
//	        │
//	place all members once more, with the victims evicted ─── no ──▶ Unproven
//	        │ yes
//	Found, or Fits if no victims are left
//
// # Units
//
// A pod never leaves a gang that needs it: a surplus pod leaves alone, a pod of
// a surplus subgroup with its subgroup, and otherwise the whole gang leaves, see
// [gang.Losses]. What leaves together is paid for together, and the room that it
// leaves on other nodes is used for the next members.
//
//	node 0   node 1   node 2
//	┌─────┐  ┌─────┐  ┌─────┐   decode needs two of the replicas a, b and c.
//	│ a-0 │  │ a-1 │  │ b-1 │   A member that takes the place of a-0 evicts
//	│ b-0 │  │ c-0 │  │ c-1 │   a-1 too, and the next takes its place.
//	└─────┘  └─────┘  └─────┘
//
// # Cost
//
// Nodes are compared by, in this order: violations of PodDisruptionBudgets, the
// highest priority, the damage, and the number of the pods that leave, and by
// when the oldest of them started: the later, the better. Violations are
// counted on all victims of the plan.
//
// The pods that must leave a node for a member are found as kube-scheduler does it: all pods of the
// node that may be evicted are removed, and then restored one after the other, the most important
// first, as long as the member fits. The result is cached for members of the same shape until the
// node changes. For 500 nodes with eight pods each and a gang of 64 that is about 6,000 questions.
//
// # What is promised
//
// No plan breaks a gang, and for the places chosen no victim could stay: no
// pod, no subgroup and no gang, see [Search]. That there is no better plan with
// other places is not promised, as this would be packing bins.
package victims
