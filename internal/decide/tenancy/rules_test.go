package tenancy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// restricted are the rules of --delivery-scope=namespace with one shared namespace.
var restricted = tenancy.Rules{Scope: tenancy.Namespace, InputNamespaces: []string{"shared"}}

func messageOf(v *tenancy.Violation) string {
	if v == nil {
		return ""
	}

	return v.Condition + "/" + v.Reason + ": " + v.Message
}

func TestInput(t *testing.T) {
	cases := map[string]struct {
		reason          string
		rules           tenancy.Rules
		namespace, name string
		want            string
	}{
		"Own":     {reason: "A tenant reads its own namespace.", rules: restricted, namespace: "a", name: "x"},
		"Shared":  {reason: "And those that are shared.", rules: restricted, namespace: "shared", name: "x"},
		"Cluster": {reason: "Without restriction, any.", rules: tenancy.Rules{Scope: tenancy.Cluster}, namespace: "b", name: "x"},
		"Zero":    {reason: "That is the zero value.", namespace: "b", name: "x"},
		"Other": {
			reason: "But not that of another.", rules: restricted, namespace: "b", name: "x",
			want: `InputForbidden/NamespaceNotAllowed: binding "in": ConfigMap b/x is not in namespace a; bind an object of this namespace, or have an administrator add b to --input-namespaces of the manager`,
		},
		"None": {
			reason: "What has no namespace belongs to no tenant.", rules: restricted, name: "x",
			want: `InputForbidden/ClusterScoped: binding "in": ConfigMap x has no namespace, and a Composition may bind objects of a namespace only; name namespace a, or have the Synthesizer bind it in refs[].resource`,
		},
		"EmptyName": {
			reason: "An empty entry does not share what has no namespace.", rules: tenancy.Rules{Scope: tenancy.Namespace, InputNamespaces: []string{""}}, name: "x",
			want: `InputForbidden/ClusterScoped: binding "in": ConfigMap x has no namespace, and a Composition may bind objects of a namespace only; name namespace a, or have the Synthesizer bind it in refs[].resource`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := messageOf(tc.rules.Input(tenancy.Binding{Of: "a", Key: "in", Kind: "ConfigMap", Namespace: tc.namespace, Name: tc.name}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClusterScoped(t *testing.T) {
	b := tenancy.Binding{Of: "a", Key: "in", Kind: "Node", Namespace: "a", Name: "n1"}
	const want = `InputForbidden/ClusterScoped: binding "in": Node is a cluster-scoped kind, and a Composition may bind objects of a namespace only; have the Synthesizer bind n1 in refs[].resource`
	if diff := cmp.Diff(want, messageOf(restricted.ClusterScoped(b))); diff != "" {
		t.Error(diff)
	}
	if got := (tenancy.Rules{}).ClusterScoped(b); got != nil {
		t.Errorf("It is forbidden without restriction: %v", got)
	}
}

func TestPinned(t *testing.T) {
	b := tenancy.Binding{Of: "a", Key: "in", Kind: "ConfigMap", Namespace: "a", Name: "mine"}
	const want = `InputForbidden/Pinned: binding "in": Synthesizer s has pinned this input, and ConfigMap a/mine is not used; remove the binding`
	if diff := cmp.Diff(want, messageOf(tenancy.Pinned(b, "s"))); diff != "" {
		t.Error(diff)
	}
}

func TestEnv(t *testing.T) {
	rejected := map[string]string{ // each with the reason
		"LD_PRELOAD":                "The dynamic linker loads a library.",
		"LD_LIBRARY_PATH":           "The dynamic linker looks for libraries there.",
		"LD_":                       "The whole prefix is rejected.",
		"GCONV_PATH":                "iconv of glibc loads modules from there.",
		"OPENSSL_CONF":              "OpenSSL loads engines and providers that the file names.",
		"OPENSSL_MODULES":           "OpenSSL loads providers from there.",
		"PATH":                      "A shell finds other programs.",
		"ENV":                       "sh reads the file.",
		"BASH_ENV":                  "bash reads the file.",
		"BASH_FUNC_ls%%":            "bash defines a function.",
		"SHELLOPTS":                 "SHELLOPTS=xtrace PS4='$(cmd)' runs cmd in bash.",
		"PS4":                       "It runs with the option xtrace, which a script may set itself.",
		"BASHOPTS":                  "It changes how bash expands words.",
		"BROWSER":                   "PYTHONWARNINGS can import antigravity, which runs $BROWSER; xdg-open runs it, too.",
		"PYTHONWARNINGS":            "It imports the module of a category.",
		"PYTHONSTARTUP":             "Python runs the file.",
		"PYTHONPATH":                "Python imports modules from there.",
		"PYTHONBREAKPOINT":          "breakpoint() calls it.",
		"PYTHONINSPECT":             "Python reads commands from standard input, which is input of the tenant.",
		"NODE_OPTIONS":              "Node.js loads what --require names.",
		"NODE_REPL_EXTERNAL_MODULE": "Node.js loads the module.",
		"PERL5OPT":                  "Perl loads what -M names.",
		"PERL5LIB":                  "Perl loads modules from there.",
		"RUBYOPT":                   "Ruby loads what -r names.",
		"LUA_INIT":                  "Lua runs its value.",
		"LUA_INIT_5_4":              "The same for a version.",
		"ERL_FLAGS":                 "Erlang runs what -eval has.",
		"ERL_AFLAGS":                "The same, in front of the arguments.",
		"JAVA_TOOL_OPTIONS":         "Java loads an agent.",
		"_JAVA_OPTIONS":             "The same.",
		"JDK_JAVA_OPTIONS":          "The same.",
		"DOTNET_STARTUP_HOOKS":      ".NET runs the assembly.",
		"CORECLR_PROFILER_PATH":     ".NET loads the library.",
		"GIT_SSH_COMMAND":           "Git runs its value.",
		"GIT_CONFIG_COUNT":          "Git reads settings, and some of them are commands.",
		"PATH=/tmp":                 "What follows the equals sign is part of the value.",
		"BASH_ENV=x":                "The same.",
	}
	accepted := []string{
		"", "HOME", "path", "MY_PATH", "PATHS", "ENVIRONMENT", "OLD_LD_X", "NODE", "PYTHO", "MY_PYTHONPATH", "PS1", "BROWSERS", "LUA_HOME", "JAVA_HOME", "GITHUB_REF", "HTTP_PROXY", "=PATH",
	}
	for name, reason := range rejected {
		env := []enov1.EnvVar{{Name: "FINE"}, {Name: name, Value: "x"}}
		if v := restricted.Env(env); v == nil || v.Condition != enov1.ConditionEnvForbidden || v.Reason != enov1.ReasonLoaderVariable {
			t.Errorf("%s\n%q is accepted: %v", reason, name, v)
		}
		if v := (tenancy.Rules{Scope: tenancy.Cluster}).Env(env); v != nil {
			t.Errorf("%q is rejected without restriction: %v", name, v)
		}
	}
	for _, name := range accepted {
		if v := restricted.Env([]enov1.EnvVar{{Name: name, Value: "x"}}); v != nil {
			t.Errorf("%q is rejected: %v", name, v)
		}
	}
	const want = `EnvForbidden/LoaderVariable: synthesisEnv: variable "PATH" can make the program of the Synthesizer run other code; remove it, or have the Synthesizer set it in its command`
	if diff := cmp.Diff(want, messageOf(restricted.Env([]enov1.EnvVar{{Name: "PATH"}}))); diff != "" {
		t.Error(diff)
	}
}

func TestWaitsFor(t *testing.T) {
	cases := map[string]struct {
		reason     string
		rules      tenancy.Rules
		allowed    string
		dependents string
		want       bool
	}{
		"Own":     {"Within a namespace, dependents are deleted first.", restricted, "", "a", true},
		"Cluster": {"Without restriction, all are.", tenancy.Rules{}, "", "b", true},
		"Other":   {"Others need permission.", restricted, "", "b", false},
		"Allowed": {"Which the target gives to namespaces.", restricted, "c, b", "b", true},
		"Part":    {"By their whole name.", restricted, "bb,cb", "b", false},
		"All":     {"Or to all.", restricted, "*", "b", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{enov1.AnnotationDependentsFrom: tc.allowed}}}
			if got := tc.rules.WaitsFor(c, tc.dependents); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}
