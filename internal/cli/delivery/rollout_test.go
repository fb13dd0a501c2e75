package delivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// rolling has a Synthesizer whose rollout is halted, one whose rollout was resumed, and
// compositions in all stages.
const rolling = `
apiVersion: eno.azure.io/v1
kind: Synthesizer
metadata: {name: web, generation: 7, resourceVersion: "70"}
status:
  conditions: [{type: RolloutHalted, status: "True", reason: TooManyFailures, observedGeneration: 7, message: "2 compositions failed with generation 7: shop/b, shop/c."}]
---
apiVersion: eno.azure.io/v1
kind: Synthesizer
metadata: {name: resume, generation: 2, resourceVersion: "20", annotations: {arbor-control.dev/resume-rollout: "2"}}
status:
  conditions: [{type: RolloutHalted, status: "True", reason: TooManyFailures, observedGeneration: 1, message: "old"}]
---
apiVersion: eno.azure.io/v1
kind: Synthesizer
metadata: {name: smooth, generation: 3, resourceVersion: "30"}
status:
  conditions: [{type: RolloutHalted, status: "True", reason: TooManyFailures, observedGeneration: 2, message: "old"}]
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: a, generation: 1, finalizers: [eno.azure.io/cleanup]}
spec: {synthesizer: {name: web}}
status: {currentSynthesis: {uuid: a1, observedCompositionGeneration: 1, observedSynthesizerGeneration: 7, reconciled: "2026-03-02T11:00:00Z"}}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: b, generation: 1, finalizers: [eno.azure.io/cleanup]}
spec: {synthesizer: {name: web}}
status:
  currentSynthesis: {uuid: b1, observedCompositionGeneration: 1, observedSynthesizerGeneration: 6}
  inFlightSynthesis: {uuid: b2, observedCompositionGeneration: 1, observedSynthesizerGeneration: 7, deferred: true, attempts: 1, canceled: "2026-03-02T11:00:00Z", results: [{severity: error, message: no such template}]}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: c, generation: 1, finalizers: [eno.azure.io/cleanup]}
spec: {synthesizer: {name: web}}
status:
  simplified: {status: Reconciling, error: "ConfigMap shop/c: rejected"}
  currentSynthesis: {uuid: c1, observedCompositionGeneration: 1, observedSynthesizerGeneration: 7, deferred: true}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: shop, name: d, generation: 1, finalizers: [eno.azure.io/cleanup]}
spec: {synthesizer: {name: web}}
status: {currentSynthesis: {uuid: d1, observedCompositionGeneration: 1, observedSynthesizerGeneration: 6}}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: store, name: e, generation: 1, finalizers: [eno.azure.io/cleanup]}
spec: {synthesizer: {name: web}}
status:
  currentSynthesis: {uuid: e1, observedCompositionGeneration: 1, observedSynthesizerGeneration: 6}
  inFlightSynthesis: {uuid: e2, observedCompositionGeneration: 1, observedSynthesizerGeneration: 7, deferred: true, attempts: 1}
---
apiVersion: eno.azure.io/v1
kind: Composition
metadata: {namespace: store, name: f, generation: 1, deletionTimestamp: "2026-03-02T11:00:00Z"}
spec: {synthesizer: {name: web}}
`

func TestDeliveryRollout(t *testing.T) {
	tests := map[string]struct {
		reason  string
		args    []string
		want    clitest.Result
		patches []string
	}{
		"All": {
			reason: "one line for each Synthesizer, and why a rollout is halted",
			want: clitest.Result{Out: `SYNTHESIZER   GENERATION   UPDATED   RUNNING   WAITING   FAILED   OTHER   HALTED
resume        2            0         0         0         0        0       no, resumed
smooth        3            0         0         0         0        0       no
web           7            1         1         1         2        1       yes
web is halted: 2 compositions failed with generation 7: shop/b, shop/c.
`},
		},
		"One": {
			reason: "of one, also what has failed",
			args:   []string{"web"},
			want: clitest.Result{Out: `SYNTHESIZER   GENERATION   UPDATED   RUNNING   WAITING   FAILED   OTHER   HALTED
web           7            1         1         1         2        1       yes
web is halted: 2 compositions failed with generation 7: shop/b, shop/c.
shop/b failed: no such template
shop/c failed: ConfigMap shop/c: rejected
`},
		},
		"JSON": {
			reason: "the same for programs",
			args:   []string{"web", "-o", "json"},
			want: clitest.Result{Out: `{
  "apiVersion": "cli.arbor.dev/v1",
  "kind": "Rollouts",
  "rollouts": [
    {
      "synthesizer": "web",
      "generation": 7,
      "updated": 1,
      "running": 1,
      "waiting": 1,
      "other": 1,
      "failed": [
        {
          "namespace": "shop",
          "name": "b",
          "error": "no such template"
        },
        {
          "namespace": "shop",
          "name": "c",
          "error": "ConfigMap shop/c: rejected"
        }
      ],
      "halted": true,
      "resumed": false,
      "message": "2 compositions failed with generation 7: shop/b, shop/c."
    }
  ]
}
`},
		},
		"Unknown": {
			reason: "there must be such a Synthesizer",
			args:   []string{"x"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `synthesizer "x" was not found: leave out the name to see what is there`},
		},
		"Format": {
			reason: "formats are checked",
			args:   []string{"-o", "tree"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `unknown output format "tree": use one of table, json, yaml, jsonpath=TEMPLATE`},
		},
		"Resume": {
			reason: "the generation is written",
			args:   []string{"resume", "web"},
			want: clitest.Result{Out: `the rollout of synthesizer web, generation 7, goes on, however many compositions fail
The next change of its spec is guarded again.
To see how far it is: arbor compositions rollout web
`},
			patches: []string{`{"metadata":{"annotations":{"arbor-control.dev/resume-rollout":"7"},"resourceVersion":"70"}}`},
		},
		"DryRun": {
			reason:  "a dry run is the server's",
			args:    []string{"resume", "web", "--dry-run"},
			want:    clitest.Result{Out: "the rollout of synthesizer web, generation 7, would be resumed (dry run: nothing was written)\n"},
			patches: []string{`dry {"metadata":{"annotations":{"arbor-control.dev/resume-rollout":"7"},"resourceVersion":"70"}}`},
		},
		"Again": {
			reason: "nothing is written twice; type and name are for one that is called like a command",
			args:   []string{"resume", "synthesizer/resume"},
			want:   clitest.Result{Out: "the rollout of synthesizer resume, generation 2, was resumed already\n"},
		},
		"NotHalted": {
			reason: "the guard of a rollout that is not halted stays on; a halt of an earlier generation does not count",
			args:   []string{"resume", "smooth"},
			want:   clitest.Result{Code: command.ExitFound, Err: "the rollout of synthesizer smooth, generation 3, is not halted: nothing was written. To see how far it is: arbor compositions rollout smooth"},
		},
		"ResumeUnknown": {
			reason: "there must be such a Synthesizer",
			args:   []string{"resume", "x"},
			want:   clitest.Result{Code: command.ExitBlind, Err: `synthesizer "x" was not found: leave out the name to see what is there`},
		},
		"ResumeNothing": {
			reason: "a name is needed",
			args:   []string{"resume"},
			want:   clitest.Result{Code: command.ExitBlind, Err: "accepts 1 arg(s), received 0\nSee 'compositions rollout resume --help' for usage"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			s := &serverInMemory{}
			objects := documents(t, rolling)
			build := func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(streams, clitest.Cluster(clitest.Holding(objects...)), reaching(s), func() time.Time { return noon })
			}

			if diff := cmp.Diff(tc.want, clitest.Run(t, build, "", append([]string{"rollout"}, tc.args...)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.patches, s.patches); diff != "" {
				t.Errorf("%s: patches (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
