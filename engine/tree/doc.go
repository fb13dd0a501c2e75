// Package tree has the algorithms that Arbor needs for trees and for graphs that
// should be trees. Its callers bring their own nodes:
//
//	Order      each node after those that it depends on, or a cycle
//	Cycles     every cycle in a list of parents
//	Path       a node, its parent, the parent of that, and so on
//	Walk       a tree from the top down, parents before children
//	Reachable  every node that edges lead to, once
//
// Users write the graphs, so cycles and chains of any length occur. No function
// recurses or runs forever, and all take time linear in nodes and edges. (Cycles
// also sorts the cycles that it finds.)
package tree
