package fields

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// withoutBash is what eno applies when the init container is to go, and
// withBash what it applies when it is to stay.
const (
	withoutBash = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
`
	withBash = withoutBash + `spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:2"}]}}}
`
)

const bashMoves = `
FROM                              FIELD
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash]
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].command
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].name
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].resources

NO LONGER APPLIED                                      NOW                                                                  AFTER
spec.template.spec.initContainers[name=base-os-bash]   partial, without image, because of Go-http-client (Update apps/v1)   removed
`

// gone keeps linters from seeing a word twice in a row.
const gone = "removed\n"

func TestFieldsPlan(t *testing.T) {
	tests := map[string]struct {
		reason string
		stdin  string
		args   []string
		want   clitest.Result
	}{
		"Classic": {
			reason: "the rest of the item moves, and then the item can go",
			args:   []string{"-f", saved("web"), "--scope", initContainers, "--to", "eno"},
			want:   clitest.Result{Out: "Deployment shop/web  4 fields would move to eno\n" + bashMoves},
		},
		"Desired": {
			reason: "what is applied next tells the same",
			stdin:  withoutBash,
			args:   []string{"-f", saved("web"), "--scope", initContainers, "--to", "eno", "--desired", "-", "--exit-code"},
			want:   clitest.Result{Out: "Deployment shop/web  4 fields would move to eno\n" + bashMoves, Code: command.ExitFound},
		},
		"SeveralScopes": {
			reason: "the annotation of what is desired has several scopes, as in delivery",
			stdin:  strings.Replace(withoutBash, "metadata: {", "metadata: {annotations: {eno.azure.io/migrate-ownership: \"spec.selector; "+initContainers+"\"}, ", 1),
			args:   []string{"-f", saved("web"), "--to", "eno", "--desired", "-", "--exit-code"},
			want:   clitest.Result{Out: "Deployment shop/web  4 fields would move to eno\n" + bashMoves, Code: command.ExitFound},
		},
		"StillDesired": {
			reason: "of an item that stays, only what it is known by moves, and nothing is removed",
			stdin:  withBash,
			args:   []string{"-f", saved("web"), "--scope", initContainers, "--to", "eno", "--desired", "-"},
			want: clitest.Result{Out: `Deployment shop/web  2 fields would move to eno

FROM                              FIELD
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash]
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].name
`},
		},
		"Whole": {
			reason: "what only others named moves when it is asked for, and notes say what does not",
			args:   []string{"-f", saved("web"), "--scope", "spec.*", "--to", "eno", "--mode", "whole"},
			want: clitest.Result{Out: `Deployment shop/web  13 fields would move to eno
! kube-controller-manager (Update apps/v1 of /scale) keeps spec.replicas: fields written through a subresource are not moved

FROM                              FIELD
Go-http-client (Update apps/v1)   spec.selector
Go-http-client (Update apps/v1)   spec.template.spec.initContainers
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web]
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web].image
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web].name
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web].ports
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP]
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP].containerPort
Go-http-client (Update apps/v1)   spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP].protocol
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash]
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].command
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].name
Go-http-client (Update apps/v1)   spec.template.spec.initContainers[name=base-os-bash].resources

NO LONGER APPLIED                                      NOW                                                                  AFTER
spec.template.spec.initContainers[name=base-os-bash]   partial, without image, because of Go-http-client (Update apps/v1)   removed
spec.selector                                          not eno's                                                            removed
spec.template.spec.containers[name=web]                not eno's                                                            removed
spec.template.spec.dnsPolicy                           not eno's                                                            swept
`},
		},
		"Sets": {
			reason: "values of sets and fields have fates of their own",
			args:   []string{"gate/north", "--scope", "spec", "--to", "platform"},
			want: clitest.Result{Out: `Gate north  4 fields would move to platform

FROM           FIELD
team (Apply)   spec.allow[=bob]
team (Apply)   spec.rules[port=443,protocol=TCP]
team (Apply)   spec.rules[port=443,protocol=TCP].port
team (Apply)   spec.rules[port=443,protocol=TCP].protocol

NO LONGER APPLIED                   NOW                                              AFTER
spec.allow[=ada]                    removed                                          ` + gone + `spec.allow[=bob]                    stays, because of team (Apply)                   removed
spec.hours                          removed                                          ` + gone + `spec.rules[port=443,protocol=TCP]   partial, without note, because of team (Apply)   removed
`},
		},
		"Lifted": {
			reason: "a scope inside of a whole is the whole",
			args:   []string{"gate/north", "--scope", "spec.hours[=8-12]", "--to", "team", "--mode", "whole"},
			want: clitest.Result{Out: `Gate north  1 field would move to team
! spec.hours can only be held as a whole; the scope is widened to it

FROM               FIELD
platform (Apply)   spec.hours

NO LONGER APPLIED   NOW          AFTER
spec.hours          not team's   removed
`},
		},
		"Nothing": {
			reason: "what is the manager's need not move",
			args:   []string{"gate/north", "--scope", "spec.hours", "--to", "platform", "--exit-code"},
			want: clitest.Result{Out: `Gate north  nothing to move

NO LONGER APPLIED   NOW       AFTER
spec.hours          removed   ` + gone + ``},
		},
		"Absent": {
			reason: "what is not there does not either",
			args:   []string{"gate/north", "--scope", "spec.closed", "--to", "platform"},
			want:   clitest.Result{Out: "Gate north  nothing to move: it has no spec.closed\n"},
		},
		"Denied": {
			reason: "some parts are never moved",
			args:   []string{"gate/north", "--scope", "status.phase", "--to", "platform"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "cannot move the ownership of status.phase: status is never moved; use another scope"},
		},
		"NoTo":   {reason: "somebody must get it", args: []string{"gate/north"}, want: clitest.Result{Code: command.ExitBlind, Err: "nobody to move ownership to: name a manager with --to"}},
		"NoMode": {reason: "modes are known by name", args: []string{"gate/north", "--to", "a", "--mode", "all"}, want: clitest.Result{Code: command.ExitBlind, Err: `unknown mode "all": use one of needed, whole`}},
		"NoDefault": {
			reason: "only of workloads is it known what people move",
			args:   []string{"gate/north", "--to", "platform"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "Gate north: no part of a Gate is moved by default: name one with --scope"},
		},
		"NotDesired": {
			reason: "a file about other objects is a mistake",
			stdin:  withBash,
			args:   []string{"gate/north", "--scope", "spec", "--to", "platform", "--desired", "-"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "Gate north: cannot find Gate north in what is to be applied: add it to the file of --desired"},
		},
		"OtherVersion": {
			reason: "versions are not compared with each other",
			stdin:  "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web}}",
			args:   []string{"-f", saved("web"), "--to", "eno", "--desired", "-"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "Deployment shop/web: cannot compare Deployment shop/web: it is apps/v1, and what is to be applied is apps/v1beta1"},
		},
		"BadDesired": {
			reason: "a file that cannot be read is told",
			args:   []string{"gate/north", "--to", "platform", "--desired", "nowhere.yaml"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "nowhere.yaml: cannot read: no such file or directory"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			got := clitest.Run(t, fieldsOf(having(clitest.Stored(t, saved("gate")))), tc.stdin, append([]string{"plan"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFieldsPlanMachine(t *testing.T) {
	got := clitest.Run(t, fieldsOf(nil), "", "plan", "-f", saved("web"), "--scope", initContainers, "--to", "eno", "-o", "yaml")
	want := clitest.Result{Out: `apiVersion: cli.arbor.dev/v1
kind: FieldPlan
plans:
- changed: true
  mode: Needed
  moves:
  - fields:
    - spec.template.spec.initContainers[name=base-os-bash]
    - spec.template.spec.initContainers[name=base-os-bash].command
    - spec.template.spec.initContainers[name=base-os-bash].name
    - spec.template.spec.initContainers[name=base-os-bash].resources
    from:
      apiVersion: apps/v1
      manager: Go-http-client
      operation: Update
    to:
      manager: eno
      operation: Apply
  notes: []
  object:
    apiVersion: apps/v1
    kind: Deployment
    name: web
    namespace: shop
  removals:
  - after:
      fate: Removed
    now:
      becauseOf:
      - apiVersion: apps/v1
        manager: Go-http-client
        operation: Update
      fate: Partial
      goes:
      - image
      stays:
      - .
      - command
      - name
      - resources
    path: spec.template.spec.initContainers[name=base-os-bash]
  scope: spec.template.spec.initContainers
  scopeExists: true
  to: eno
`}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
