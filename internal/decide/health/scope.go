package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/internal/identity"
)

// maxNamed is how many objects and permissions a check names.
const maxNamed = 5

// A Delivered is a Composition as a manager with --delivery-scope=namespace would deliver it.
type Delivered struct {
	Namespace, Name string
	// Account is the name of its ServiceAccount, "" if it has none.
	Account string
	// Objects are those of its current synthesis.
	Objects []identity.Identity
	// Lacking are permissions that the account needs and does not have.
	Lacking []string
}

// ScopeFacts are what --delivery-scope=namespace depends on.
type ScopeFacts struct {
	Compositions Found[[]Delivered]
	// Closed are the namespaces with Compositions whose ServiceAccounts the manager may not
	// impersonate.
	Closed Found[[]string]
}

// ExamineScope returns what would change if the manager ran with --delivery-scope=namespace.
func ExamineScope(f ScopeFacts) []Check {
	const about = "scope"
	if f.Compositions.Err != nil {
		return unknown(about, "", f.Compositions.Err)
	}
	var all []Check
	for _, c := range f.Compositions.Is {
		all = append(all, c.examine(about)...)
	}
	if f.Closed.Err != nil {
		all = append(all, unknown(about, "", f.Closed.Err)...)
	}
	for _, name := range f.Closed.Is {
		all = append(all, Check{
			About: about, Object: "Namespace " + name, State: Problem, Message: "the manager may not impersonate ServiceAccounts in this namespace",
			Fix: "add it to delivery.tenantNamespaces of the chart",
		})
	}
	if len(all) == 0 {
		all = []Check{{About: about, State: OK, Message: fmt.Sprintf("--delivery-scope=namespace changes nothing for the %d Compositions", len(f.Compositions.Is))}}
	}

	return all
}

// examine returns what would change for one Composition.
func (d Delivered) examine(about string) (all []Check) {
	object := fmt.Sprintf("Composition %s/%s", d.Namespace, d.Name)
	account := fmt.Sprintf("ServiceAccount %s/%s", d.Namespace, d.Account)
	if d.Account == "" {
		all = append(all, Check{
			About: about, Object: object, State: Problem, Message: "it has no ServiceAccount, so it would not be delivered",
			Fix: "set spec.serviceAccountName, or start the manager with --default-service-account",
		})
	}
	if len(d.Lacking) > 0 {
		all = append(all, Check{
			About: about, Object: object, State: Problem, Message: account + " may not " + some(d.Lacking),
			Fix: "give it these permissions by a Role and a RoleBinding, or remove the objects from the output of the Synthesizer",
		})
	}
	var outside []string
	for _, id := range d.Objects {
		if id.Namespace != d.Namespace {
			outside = append(outside, id.String())
		}
	}
	if len(outside) > 0 {
		slices.Sort(outside)
		all = append(all, Check{
			About: about, Object: object, State: Warning, Message: "it delivers objects outside of its namespace: " + some(slices.Compact(outside)),
			Fix: "check that this tenant should reach them; if not, give its ServiceAccount no permission for them",
		})
	}

	return all
}

// some names the first of many.
func some(all []string) string {
	text := strings.Join(all[:min(len(all), maxNamed)], ", ")
	if n := len(all) - maxNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}

	return text
}
