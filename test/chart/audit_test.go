package chart_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A right is one verb of one rule, on one resource.
type right struct {
	namespace string // "" is all
	group     string
	resource  string
	name      string // "" is any
	verb      string
}

func (r right) String() string {
	where := "everywhere"
	if r.namespace != "" {
		where = "in " + r.namespace
	}

	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s %s", r.verb, r.resource, r.group, r.name, where))
}

// covers reports whether a permission is enough for a request.
func (r right) covers(asked right) bool {
	return (r.namespace == "" || r.namespace == asked.namespace) && r.group == asked.group && r.resource == asked.resource &&
		(r.name == "" || r.name == asked.name) && r.verb == asked.verb
}

// granted are the permissions of a service account that do not come from Kubernetes: what its own
// roles have, cannot be reduced here.
func granted(t *testing.T, c client.Client, namespace, account string) []right {
	t.Helper()
	all := map[right]bool{}
	ours := func(subjects []rbacv1.Subject) bool {
		return slices.Contains(subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: account})
	}
	clusterwide, local := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	must(t, c.List(t.Context(), clusterwide))
	for _, b := range clusterwide.Items {
		if ours(b.Subjects) {
			role := &rbacv1.ClusterRole{}
			must(t, c.Get(t.Context(), client.ObjectKey{Name: b.RoleRef.Name}, role))
			if !builtIn(role) {
				expand(all, "", role.Rules)
			}
		}
	}
	must(t, c.List(t.Context(), local))
	for _, b := range local.Items {
		if ours(b.Subjects) {
			expand(all, b.Namespace, rulesOf(t, c, b))
		}
	}

	return slices.SortedFunc(maps.Keys(all), func(a, b right) int { return strings.Compare(a.String(), b.String()) })
}

// rulesOf are those of the role of a binding, none if the role is one of Kubernetes' own.
func rulesOf(t *testing.T, c client.Client, b rbacv1.RoleBinding) []rbacv1.PolicyRule {
	t.Helper()
	if b.RoleRef.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		must(t, c.Get(t.Context(), client.ObjectKey{Name: b.RoleRef.Name}, role))
		if builtIn(role) {
			return nil
		}

		return role.Rules
	}
	role := &rbacv1.Role{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, role))
	if builtIn(role) {
		return nil
	}

	return role.Rules
}

func builtIn(role client.Object) bool {
	return role.GetLabels()["kubernetes.io/bootstrapping"] == "rbac-defaults"
}

func expand(into map[right]bool, namespace string, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						into[right{namespace, group, resource, name, verb}] = true
					}
				}
			}
		}
	}
}

// asked is what an account has asked the API server for, as its audit log reports: what it was
// given, and what it was denied. Permissions of all users, such as discovery, is left out. A
// request that impersonates another account is one of that account, and shows that the sender may
// impersonate it.
func asked(t *testing.T, user string) (given, refused map[right]bool) {
	t.Helper()
	given, refused = map[right]bool{}, map[right]bool{}
	for _, event := range audited(t, user) {
		if strings.Contains(event.Annotations["authorization.k8s.io/reason"], `"system:`) {
			continue
		}
		if as := event.ImpersonatedUser; as != nil && event.User.Username == user {
			parts := strings.Split(as.Username, ":")
			given[right{parts[2], "", "serviceaccounts", parts[3], "impersonate"}] = true

			continue
		}
		r := right{event.ObjectRef.Namespace, event.ObjectRef.APIGroup, event.ObjectRef.Resource, event.ObjectRef.Name, event.Verb}
		if event.ObjectRef.Subresource != "" {
			r.resource += "/" + event.ObjectRef.Subresource
		}
		switch {
		case event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusForbidden:
			refused[r] = true
		default:
			given[r] = true
		}
		if event.Verb == "patch" && event.ResponseStatus != nil && event.ResponseStatus.Code == http.StatusCreated {
			// What an apply creates needs both permissions.
			r.verb = "create"
			given[r] = true
		}
	}

	return given, refused
}

// audited are the requests of an account about objects, in the order of the log.
func audited(t *testing.T, user string) []auditv1.Event {
	t.Helper()
	file, err := os.Open(auditLog)
	must(t, err)
	defer file.Close()
	var all []auditv1.Event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), user) {
			continue
		}
		event := auditv1.Event{}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line is being written
		}
		if (event.User.Username == user || event.ImpersonatedUser != nil && event.ImpersonatedUser.Username == user) && event.ObjectRef != nil {
			all = append(all, event)
		}
	}
	must(t, lines.Err())

	return all
}

// unused are the permissions that were not used. An event that happens again is counted by a patch,
// and none does so for sure while a test looks on.
func unused(have []right, given map[right]bool) []string {
	var words []string
	for _, r := range have {
		if r.resource == "events" && r.verb == "patch" {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(given)), r.covers) {
			words = append(words, r.String())
		}
	}

	return words
}
