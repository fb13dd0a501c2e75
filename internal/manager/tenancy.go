package manager

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// TenancyOptions are about what a manager with --delivery-scope=namespace writes as.
type TenancyOptions struct {
	// DefaultAccount is the ServiceAccount of Compositions that name none, "" for no account.
	DefaultAccount string
	// ForbiddenGrace is how long objects that may not be deleted hold up a namespace.
	ForbiddenGrace time.Duration
}

// DefaultTenancyOptions name no account.
func DefaultTenancyOptions() TenancyOptions { return TenancyOptions{ForbiddenGrace: time.Hour} }

// AddFlags binds the options to flags, with the current values as defaults.
func (o *TenancyOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DefaultAccount, "default-service-account", o.DefaultAccount, "With --delivery-scope=namespace: name of the ServiceAccount, in the namespace of each Composition, that delivery uses if spec.serviceAccountName is empty. Empty: such Compositions are not delivered.")
	fs.DurationVar(&o.ForbiddenGrace, "forbidden-grace", o.ForbiddenGrace, "With --delivery-scope=namespace: how long objects outside of a terminating namespace keep its Compositions from being deleted if their ServiceAccount may not delete them. After that the objects are left behind.")
}

// Validate returns the first thing that is wrong.
func (o *TenancyOptions) Validate() error {
	if o.DefaultAccount != "" {
		if err := tenancy.ValidateAccountName(o.DefaultAccount); err != nil {
			return fmt.Errorf("--default-service-account %q: it must be the name of a ServiceAccount: %w", o.DefaultAccount, err)
		}
	}
	if o.ForbiddenGrace < 0 {
		return fmt.Errorf("--forbidden-grace %s: it must not be negative", o.ForbiddenGrace)
	}

	return nil
}

func (o *Options) validateScope() error {
	scope, err := tenancy.ParseScope(o.Scope)
	if err != nil {
		return fmt.Errorf("--delivery-scope %q: %w", o.Scope, err)
	}
	if len(o.InputNamespaces) > 0 && !scope.Restricts() {
		return fmt.Errorf("--input-namespaces %s: with --delivery-scope=%s, Compositions may bind inputs of all namespaces; use --delivery-scope=%s, or leave it out", strings.Join(o.InputNamespaces, ","), scope, tenancy.Namespace)
	}
	for _, name := range o.InputNamespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("--input-namespaces %q: %s", name, problems[0])
		}
	}

	return nil
}
