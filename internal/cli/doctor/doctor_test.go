package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/clusterfacts"
)

// TestDoctorFlags has flags that do not fit: the cluster is not asked.
func TestDoctorFlags(t *testing.T) {
	cases := map[string]struct {
		reason, scope, account, format, namespace string
		want                                      string
	}{
		"Scope":   {reason: "There are two scopes.", scope: "team", want: `--delivery-scope "team"`},
		"Alone":   {reason: "Without the scope, the account would be ignored.", scope: "cluster", account: "deployer", want: "--default-service-account is for --delivery-scope=namespace: set both"},
		"Account": {reason: "No ServiceAccount can have this name.", scope: "namespace", account: "Bad Name!", want: `--default-service-account "Bad Name!": a lowercase RFC 1123 subdomain`},
		"Space":   {reason: "It would be ignored.", namespace: "team", want: "-n team: doctor looks in all namespaces; --arbor-namespace names the one"},
		"Format":  {reason: "There is no such format.", format: "xml", want: `unknown output format "xml"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &doctorOptions{
				IOStreams: genericiooptions.NewTestIOStreamsDiscard(), flags: genericclioptions.NewConfigFlags(true), scope: tc.scope, account: tc.account,
				connect: func(genericclioptions.RESTClientGetter) (*clusterfacts.Reader, error) {
					t.Errorf("%s\nthe cluster is asked", tc.reason)

					return nil, errors.New("no cluster")
				},
			}
			o.output.Add(&cobra.Command{}, output.Table)
			if tc.format != "" {
				o.output.Format = tc.format
			}
			*o.flags.Namespace = tc.namespace
			err := o.run(t.Context())
			if exit, ok := errors.AsType[*command.ExitError](err); !ok || exit.Code != command.ExitBlind || !strings.Contains(exit.Error(), tc.want) {
				t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
