package tenancy

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// An Account is a ServiceAccount that the objects of a Composition are read, written and deleted
// as. The zero value means that there is none.
type Account struct {
	Namespace, Name string
}

// AccountOf returns the account of a Composition. It is always one of its own namespace.
// byDefault is the value of --default-service-account.
func (s Scope) AccountOf(c *enov1.Composition, byDefault string) Account {
	name := cmp.Or(c.Spec.ServiceAccountName, byDefault)
	if !s.Restricts() || ValidateAccountName(name) != nil {
		return Account{}
	}

	return Account{Namespace: c.Namespace, Name: name}
}

// ValidateAccountName reports why a text is not the name of a ServiceAccount.
func ValidateAccountName(name string) error {
	if name == "" {
		return errors.New("it is empty")
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return errors.New(strings.Join(problems, ", "))
	}

	return nil
}

// Username returns the name that the API server knows the account by, "" for no account.
func (a Account) Username() string {
	if a == (Account{}) {
		return ""
	}

	return "system:serviceaccount:" + a.Namespace + ":" + a.Name
}

// Groups returns the groups of the account. The API server adds them when a client
// impersonates a ServiceAccount and sends no groups.
func (a Account) Groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"}
}

func (a Account) String() string {
	if a == (Account{}) {
		return "no ServiceAccount"
	}

	return fmt.Sprintf("ServiceAccount %s/%s", a.Namespace, a.Name)
}

// Tenant returns the tenant that a namespace belongs to. What Compositions of different
// tenants deliver is independent: no tenant keeps the objects of another one from being
// deleted.
func (s Scope) Tenant(namespace string) string {
	if !s.Restricts() {
		return ""
	}

	return namespace
}
