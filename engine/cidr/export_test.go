package cidr

// Slots is how many taken blocks the pool has memory for.
func (p *Pool) Slots() int { return len(p.slots.chunks) * chunkSlots }

// Owned is how much of that it shares with no clone.
func (p *Pool) Owned() int {
	n := 0
	for _, c := range p.slots.chunks {
		if c.owner == p.slots.me.Load() {
			n += chunkSlots
		}
	}

	return n
}
