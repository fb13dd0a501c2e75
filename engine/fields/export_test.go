package fields

// Value is what the object has at the node.
func (n *Node) Value() any { return n.value }
