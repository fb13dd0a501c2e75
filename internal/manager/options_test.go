package manager

import (
	"slices"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/api/crds"
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		want   string // "" means valid
	}{
		"Defaults":       {"The defaults run.", func(*Options) {}, ""},
		"LoopbackPlain":  {"On this machine plain metrics are fine.", func(o *Options) { o.MetricsSecure, o.MetricsAddress = false, "127.0.0.1:8080" }, ""},
		"LoopbackSix":    {"In either family.", func(o *Options) { o.MetricsSecure, o.MetricsAddress = false, "[::1]:8080" }, ""},
		"NoMetrics":      {"None at all are fine too.", func(o *Options) { o.MetricsSecure, o.MetricsAddress = false, "0" }, ""},
		"PublicPlain":    {"For the world they are not.", func(o *Options) { o.MetricsSecure = false }, "--metrics-bind-address"},
		"NoHost":         {"An address that cannot be read is not a loopback one.", func(o *Options) { o.MetricsSecure, o.MetricsAddress = false, "8080" }, "--metrics-bind-address"},
		"LoopbackPprof":  {"Profiles are for this machine.", func(o *Options) { o.PprofAddress = "localhost:6060" }, ""},
		"PublicPprof":    {"And for no other: nobody is asked who they are.", func(o *Options) { o.PprofAddress = ":6060" }, "--pprof-bind-address"},
		"Port":           {"Ports have a range.", func(o *Options) { o.WebhookPort = 0 }, "--webhook-port 0"},
		"Unknown":        {"Parts have names.", func(o *Options) { o.Controllers = []string{"podgroups", "trees"} }, `unknown controller "trees"`},
		"Timeout":        {"A synthesis takes time.", func(o *Options) { o.Synthesis.Timeout = 0 }, "--synthesis-timeout 0s"},
		"Concurrency":    {"And room.", func(o *Options) { o.Synthesis.Concurrency = 0 }, "--synthesis-concurrency 0"},
		"Cooldown":       {"Time does not run backwards.", func(o *Options) { o.Synthesis.Cooldown = -1 }, "--rollout-cooldown -1ns"},
		"MaxFailures":    {"Not fewer than none can fail.", func(o *Options) { o.Synthesis.MaxFailures = -1 }, "--rollout-max-failures -1: it must be 0 (never halt) or more"},
		"NeverHalt":      {"A rollout may go on whatever fails.", func(o *Options) { o.Synthesis.MaxFailures = 0 }, ""},
		"HistoryLimit":   {"A history cannot be shorter than none.", func(o *Options) { o.Synthesis.HistoryLimit = -1 }, "--history-limit -1: it must be 0 to 50"},
		"NoHistory":      {"It can be empty.", func(o *Options) { o.Synthesis.HistoryLimit = 0 }, ""},
		"LongHistory":    {"It must fit into the status.", func(o *Options) { o.Synthesis.HistoryLimit = 51 }, "--history-limit 51"},
		"Watchdog":       {"Nor does it for what is stuck.", func(o *Options) { o.Synthesis.Watchdog = -1 }, "--watchdog-threshold -1ns"},
		"Pods":           {"Programs can run in pods.", func(o *Options) { o.Synthesis.Image = "arbor" }, ""},
		"TwoWays":        {"Or as processes, and not both.", func(o *Options) { o.Synthesis.Image, o.Synthesis.Local = "arbor", true }, `--executor-image "arbor" and --local-synthesizers`},
		"NoAccount":      {"A pod is somebody.", func(o *Options) { o.Synthesis.Image, o.Synthesis.PodServiceAccount = "arbor", "" }, "--synthesizer-pod-service-account is empty"},
		"CreationTTL":    {"A kubelet is not that quick.", func(o *Options) { o.Synthesis.Image, o.Synthesis.CreationTTL = "arbor", 0 }, "--container-creation-ttl 0s"},
		"PullTimeout":    {"Nor is a registry.", func(o *Options) { o.Synthesis.Image, o.Synthesis.PullTimeout = "arbor", 0 }, "--image-pull-timeout 0s: it must be at least 1s"},
		"Drain":          {"Webhooks cannot end before SIGTERM.", func(o *Options) { o.WebhookDrain = -1 }, "--webhook-drain -1ns: it must not be negative"},
		"FailurePolicy":  {"A typing error must not open the door.", func(o *Options) { o.WebhookFailurePolicy = "ignore" }, `--webhook-failure-policy "ignore": it must be Fail or Ignore`},
		"FailOpen":       {"It may be open.", func(o *Options) { o.WebhookFailurePolicy = "Ignore" }, ""},
		"HookTimeout":    {"API servers accept 30 seconds at most.", func(o *Options) { o.WebhookTimeoutSeconds = 31 }, "--webhook-timeout-seconds 31: it must be 1 to 30"},
		"Namespaces":     {"Selectors are those of kubectl.", func(o *Options) { o.WebhookNamespaceSelector = "a in" }, `--webhook-namespace-selector "a in": write a label selector`},
		"Objects":        {"Or JSON.", func(o *Options) { o.WebhookObjectSelector = `{"labels": {}}` }, `--webhook-object-selector "{\"labels\": {}}": write a label selector`},
		"Migration":      {"Ownership is moved, reported or left.", func(o *Options) { o.Delivery.Migration = "maybe" }, `--ownership-migration "maybe"`},
		"PruneGuard":     {"A share is a percentage.", func(o *Options) { o.Delivery.PruneGuard = "half" }, `--prune-guard "half": it must be empty, off or a percentage from 0 to 100, such as 50`},
		"PruneShare":     {"With or without its sign.", func(o *Options) { o.Delivery.PruneGuard = "50%" }, ""},
		"FieldManager":   {"Other control planes know deliveries by the beginning of the name.", func(o *Options) { o.Delivery.FieldManager = "mine" }, `--field-manager "mine": it must be eno, or eno- and`},
		"Drift":          {"Drift is corrected, reported or left until it is time.", func(o *Options) { o.Delivery.Drift = "off" }, `--drift "off": it must be correct, report or interval`},
		"Readiness":      {"Objects are ready as in Eno, or by kstatus.", func(o *Options) { o.Delivery.Readiness = "always" }, `--readiness "always": it must be eno or kstatus`},
		"HealthTimeout":  {"A limit is not in the past.", func(o *Options) { o.Delivery.HealthTimeout = -1 }, "--health-timeout -1ns: it must not be negative; 0 means no limit"},
		"NoTimeout":      {"There may be none.", func(o *Options) { o.Delivery.HealthTimeout = 0 }, ""},
		"Toleration":     {"Flags of pods are checked.", func(o *Options) { o.Synthesis.Pods.Tolerations = []string{"="} }, `--taint-toleration "="`},
		"Workers":        {"Somebody must work.", func(o *Options) { o.Delivery.Workers = 0 }, "--delivery-workers 0"},
		"Guard":          {"All PriorityClasses can be guarded.", func(o *Options) { o.PriorityClassGuard = "all" }, ""},
		"NoGuard":        {"And none.", func(o *Options) { o.PriorityClassGuard = "off" }, ""},
		"WrongGuard":     {"A typing error must not switch the guard off.", func(o *Options) { o.PriorityClassGuard = "System" }, `--priority-class-guard "System": it must be system, all or off`},
		"Scope":          {"Tenants are kept apart, or not.", func(o *Options) { o.Scope = "namespace" }, ""},
		"WrongScope":     {"A typing error must not give tenants everything.", func(o *Options) { o.Scope = "Namespace" }, `--delivery-scope "Namespace": it must be cluster or namespace`},
		"DefaultAccount": {"It is the name of a ServiceAccount, not a user.", func(o *Options) { o.Tenancy.DefaultAccount = "system:admin" }, `--default-service-account "system:admin": it must be the name of a ServiceAccount`},
		"ForbiddenGrace": {"A limit is not in the past.", func(o *Options) { o.Tenancy.ForbiddenGrace = -1 }, "--forbidden-grace -1ns: it must not be negative"},
		"Inputs":         {"Namespaces of inputs are shared by tenants.", func(o *Options) { o.Scope, o.InputNamespaces = "namespace", []string{"shared"} }, ""},
		"AllInputs":      {"Where all are shared, naming some would be misleading.", func(o *Options) { o.InputNamespaces = []string{"a", "b"} }, "--input-namespaces a,b: with --delivery-scope=cluster, Compositions may bind inputs of all namespaces"},
		"NoNamespace":    {"A namespace has a name.", func(o *Options) { o.Scope, o.InputNamespaces = "namespace", []string{"a", "*"} }, `--input-namespaces "*": a lowercase RFC 1123 label`},
		"LogFormat":      {"Two formats.", func(o *Options) { o.LogFormat = "xml" }, `--log-format "xml"`},
		"NoneControlled": {"Nothing to do is a mistake.", func(o *Options) { o.Controllers = nil }, "--controllers is empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			tc.change(&o)
			err := o.Validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// Every component finds the CRDs that it names, and its webhooks have what the registration and the
// probe need.
func TestParts(t *testing.T) {
	for _, p := range selected(Parts()) {
		definitions, err := p.definitions()
		if err != nil || len(definitions) == 0 {
			t.Errorf("part %s: %v", p.name, err)
		}
		for _, h := range p.webhooks {
			if strings.Count(h.Name, ".") < 2 || h.Path == "" || h.handler == nil || h.mustReject == nil {
				t.Errorf("part %s: webhook %+v", p.name, h.Webhook)
			}
		}
	}
	if got := len(selected([]string{"podgroups", "podgroups"})); got != 1 {
		t.Errorf("a part named twice runs %d times", got)
	}
	if on := DefaultOptions().Controllers; !slices.Equal(on, []string{"podgroups", "subnets", "synthesis", "delivery"}) {
		t.Errorf("on by default are %v", on)
	}
	if len(crds.All()) == 0 {
		t.Error("there are no definitions")
	}
}
