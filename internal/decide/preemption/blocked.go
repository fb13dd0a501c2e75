package preemption

import (
	"fmt"
	"slices"
	"strings"
)

// maxNames is how many pods a message names.
const maxNames = 5

// InTheWay reports which pods do not terminate. The same pods give the same message,
// whatever their order.
func InTheWay(pods []string) string {
	if len(pods) == 1 {
		return fmt.Sprintf("pod %s is in the way and does not terminate", pods[0])
	}
	names := slices.Sorted(slices.Values(pods))
	text := strings.Join(names[:min(maxNames, len(names))], ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return fmt.Sprintf("pods %s are in the way and do not terminate", text)
}
