package objecthealth

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// An Object is the health of one object, with its name.
type Object struct {
	Health

	// Name is how messages call the object.
	Name string
	// Since is when it began not to be Current. Without it, there is no timeout.
	Since time.Time
}

// A Summary is the health of many objects.
type Summary struct {
	// Total is how many there are, and Counts how many are in each state.
	Total  int
	Counts [Failed + 1]int
	// Worst is the object in the worst state, and the first of them by name.
	Worst Object
	// Next is when the summary changes if no object does, the zero time for never.
	Next time.Time
}

// Summarize counts objects and finds the worst. One that is Progressing for as long as
// the limit counts as Degraded; without a limit none does. The order of the objects does
// not matter.
func Summarize(objects []Object, now time.Time, limit time.Duration) Summary {
	s := Summary{Total: len(objects)}
	for i, o := range objects {
		if o.State == Progressing && limit > 0 && !o.Since.IsZero() {
			if end := o.Since.Add(limit); now.Before(end) {
				s.Next = earlier(s.Next, end)
			} else {
				o = o.timedOut(limit)
			}
		}
		s.Counts[o.State]++
		if i == 0 || compare(o, s.Worst) < 0 {
			s.Worst = o
		}
	}

	return s
}

func (o Object) timedOut(limit time.Duration) Object {
	o.Message = fmt.Sprintf("progressing for more than %s: %s", limit, o.text())
	o.State, o.Reason = Degraded, ReasonTimeout

	return o
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}

	return a
}

// compare orders the worst object first.
func compare(a, b Object) int {
	return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
}

// State is that of the worst object.
func (s Summary) State() State { return s.Worst.State }

// Condition is the summary as a condition. It is true if all objects are Current, unknown
// while some are Progressing, and false if one is worse.
func (s Summary) Condition() metav1.Condition {
	c := metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionFalse}
	switch s.State() {
	case Current:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, enov1.ReasonHealthy, healthy(s.Total)

		return c
	case Progressing:
		c.Status, c.Reason = metav1.ConditionUnknown, enov1.ReasonProgressing
	case Degraded:
		c.Reason = enov1.ReasonDegraded
	case Failed:
		c.Reason = enov1.ReasonFailed
	}
	c.Message = fmt.Sprintf("%d of %d objects %s not healthy (%s): %s: %s",
		s.Total-s.Counts[Current], s.Total, plural(s.Total-s.Counts[Current], "is", "are"), s.counts(), s.Worst.Name, s.Worst.text())

	return c
}

// counts lists how many objects are in each bad state, the worst first.
func (s Summary) counts() string {
	var all []string
	for state := Failed; state > Current; state-- {
		if n := s.Counts[state]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, strings.ToLower(state.String())))
		}
	}

	return strings.Join(all, ", ")
}

func healthy(total int) string {
	if total == 0 {
		return "there are no objects"
	}

	return fmt.Sprintf("%d %s healthy", total, plural(total, "object is", "objects are"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}

	return many
}

// text is the reason with the message.
func (h Health) text() string {
	if h.Message == "" {
		return h.Reason
	}

	return h.Reason + ": " + h.Message
}
