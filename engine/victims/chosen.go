package victims

import "github.com/arbor-control/arbor/engine/gang"

// chosen is the set of pods that are evicted in the plan. A pod joins with all
// pods that leave together with it, so the set never breaks a gang.
type chosen struct {
	pods []Pod
	// losses of each gang, and its pods by member: -1 for those without one.
	losses []*gang.Losses
	podOf  [][]int

	in []bool
	// order has the pods in the order in which they were taken.
	order []int
	takes []taken

	// allowed and covered are, by budget, the disruptions allowed and the
	// chosen pods.
	allowed, covered []int32
	violations       int
}

// taken is what is needed to undo one take.
type taken struct{ pods, gang, losses int }

func newChosen(p *Problem) *chosen {
	c := &chosen{
		pods: p.Pods, in: make([]bool, len(p.Pods)),
		losses: make([]*gang.Losses, len(p.Gangs)), podOf: make([][]int, len(p.Gangs)),
		allowed: p.Budgets, covered: make([]int32, len(p.Budgets)),
	}
	for i, g := range p.Gangs {
		c.losses[i] = gang.NewLosses(g.Tree, g.Members, g.Rules)
		c.podOf[i] = make([]int, len(g.Members))
		for m := range c.podOf[i] {
			c.podOf[i][m] = -1
		}
	}
	for i, pod := range p.Pods {
		if pod.Gang >= 0 {
			c.podOf[pod.Gang][pod.Member] = i
		}
	}

	return c
}

// with returns the pods that leave together with a pod, itself included.
func (c *chosen) with(pod int) []int {
	p := &c.pods[pod]
	if p.Gang < 0 {
		return []int{pod}
	}

	return c.ofMembers(p.Gang, c.losses[p.Gang].With(p.Member))
}

func (c *chosen) ofMembers(of int, members []int) []int {
	pods := make([]int, 0, len(members))
	for _, m := range members {
		if pod := c.podOf[of][m]; pod >= 0 {
			pods = append(pods, pod)
		}
	}

	return pods
}

// take adds pods, with all that leave together with them, and returns those
// that are new.
func (c *chosen) take(pods []int) []int {
	before := len(c.order)
	for _, pod := range pods {
		if c.in[pod] {
			continue
		}
		undo := taken{pods: len(c.order), gang: c.pods[pod].Gang}
		all := []int{pod}
		if undo.gang >= 0 {
			losses := c.losses[undo.gang]
			undo.losses = losses.Mark()
			all = c.ofMembers(undo.gang, losses.Take(c.pods[pod].Member))
		}
		for _, one := range all {
			c.add(one)
		}
		c.order = append(c.order, all...)
		c.takes = append(c.takes, undo)
	}

	return c.order[before:]
}

// numTakes returns how many takes there were, for undoTakes.
func (c *chosen) numTakes() int { return len(c.takes) }

// undoTakes removes the pods of all takes but the first n.
func (c *chosen) undoTakes(n int) {
	for len(c.takes) > n {
		undo := c.takes[len(c.takes)-1]
		for _, pod := range c.order[undo.pods:] {
			c.remove(pod)
		}
		if undo.gang >= 0 {
			c.losses[undo.gang].Rollback(undo.losses)
		}
		c.order, c.takes = c.order[:undo.pods], c.takes[:len(c.takes)-1]
	}
}

// add and remove change the set alone. They count violations on the whole set,
// so the order of its pods does not matter.
func (c *chosen) add(pod int) {
	c.in[pod] = true
	for _, b := range c.pods[pod].Budgets {
		if c.covered[b]++; c.covered[b] > c.allowed[b] {
			c.violations++
		}
	}
}

func (c *chosen) remove(pod int) {
	c.in[pod] = false
	for _, b := range c.pods[pod].Budgets {
		if c.covered[b]--; c.covered[b] >= c.allowed[b] {
			c.violations--
		}
	}
}

// exceeds reports whether a pod is covered by a budget that is exceeded.
func (c *chosen) exceeds(pod int) bool {
	for _, b := range c.pods[pod].Budgets {
		if c.covered[b] > c.allowed[b] {
			return true
		}
	}

	return false
}
