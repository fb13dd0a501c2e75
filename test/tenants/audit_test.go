package tenants_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// managerUser is what the API server knows the manager as.
const managerUser = "system:serviceaccount:arbor-system:arbor-manager"

// own are the resources that the manager writes as itself: status, slices, events, its lease
// and the CRDs that it installs.
var own = []string{"compositions", "resourceslices", "synthesizers", "symphonies", "events", "leases", "customresourcedefinitions"}

// auditWrites reads the API server's audit log. It returns every write of the manager to
// something that it delivers, and every read of a delivered object, that does not carry the
// account of a tenant, or that got through in a namespace of another one; and the number of
// writes that got through.
func auditWrites() (problems []string, writes int) {
	file, err := os.Open(auditLog)
	if err != nil {
		return []string{err.Error()}, 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := auditv1.Event{}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.User.Username != managerUser || event.ObjectRef == nil {
			continue
		}
		if event.ImpersonatedUser == nil {
			if isDelivered(event) {
				problems = append(problems, "sent as the manager: "+describe(event))
			}

			continue
		}
		problems = append(problems, checkAccount(event)...)
		if event.ResponseStatus != nil && event.ResponseStatus.Code < http.StatusBadRequest && event.Verb != "get" {
			writes++
		}
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, err.Error())
	}

	return problems, writes
}

// isDelivered reports whether a request of the manager is about an object that it delivers. It
// watches those as itself, and reads inputs: tests name them input, or input- and more. Requests
// that the API server rejected because the manager may not impersonate carry no account.
func isDelivered(e auditv1.Event) bool {
	if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
		return false
	}
	reads := slices.Contains([]string{"list", "watch"}, e.Verb) || e.Verb == "get" && (e.ObjectRef.Resource == "namespaces" || strings.HasPrefix(e.ObjectRef.Name, "input"))

	return !reads && !slices.Contains(own, e.ObjectRef.Resource)
}

// checkAccount returns what is wrong with a request that carries an account.
func checkAccount(e auditv1.Event) (problems []string) {
	text := strings.Split(e.ImpersonatedUser.Username, ":")
	if len(text) != 4 || !slices.Contains(namespaces, text[2]) {
		return []string{"sent as a user that is not an account of a tenant: " + describe(e)}
	}
	account := tenancy.Account{Namespace: text[2], Name: text[3]}
	if account.Username() != e.ImpersonatedUser.Username || !slices.Equal(account.Groups(), e.ImpersonatedUser.Groups) {
		problems = append(problems, "sent with other groups: "+describe(e))
	}
	through := e.ResponseStatus != nil && e.ResponseStatus.Code < http.StatusBadRequest
	allowed := e.ObjectRef.Namespace == account.Namespace || e.ObjectRef.Namespace == neighbor && account.Namespace == "departed"
	if through && !allowed {
		problems = append(problems, "got through to another namespace: "+describe(e))
	}

	return problems
}

func describe(e auditv1.Event) string {
	code, as := int32(0), "itself"
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	if e.ImpersonatedUser != nil {
		as = fmt.Sprintf("%s %v", e.ImpersonatedUser.Username, e.ImpersonatedUser.Groups)
	}

	return fmt.Sprintf("%s %s %s/%s as %s: %d", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name, as, code)
}
