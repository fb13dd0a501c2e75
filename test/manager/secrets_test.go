package manager_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// Canaries are values that must not be seen anywhere but in Secrets and in what is
// made of them. The number is what the server quotes when it rejects a Secret.
const (
	inputCanary  = "canary-of-the-input"
	outputCanary = "canary-of-the-output"
	numberCanary = "7204113377"
	patchCanary  = "canary-of-the-patch"
)

// leak makes Secrets: one that is fine, one that the server rejects and quotes
// while it does so, a patch of one that it rejects, and one whose override fails at
// the value that is there.
const leak = `cat >/dev/null
printf '{"kind":"ResourceList","items":[
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"fine","namespace":"%s"},"stringData":{"password":"` + outputCanary + `"}},
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"refused","namespace":"%s"},"stringData":{"pin":` + numberCanary + `}},
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"overridden","namespace":"%s","annotations":{"eno.azure.io/overrides":"[{\\"path\\":\\"self.type\\",\\"condition\\":\\"int(string(self.data.password)) > 1\\",\\"value\\":\\"Opaque\\"}]"}},"stringData":{"password":"` + outputCanary + `"}},
{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"given","namespace":"%s"},"patch":{"apiVersion":"v1","kind":"Secret","ops":[{"op":"test","path":"/data/none","value":"` + patchCanary + `"}]}}
]}' "$COMPOSITION_NAMESPACE" "$COMPOSITION_NAMESPACE" "$COMPOSITION_NAMESPACE" "$COMPOSITION_NAMESPACE"`

// fail says what it was given, which the composition shows and the log must not.
const fail = `cat >&2; exit 1`

// No value of a Secret is ever in a log, an event, a status or a metric.
func TestSecretsAreNotRevealed(t *testing.T) {
	c := newClient(t)
	m := server.StartManager(t, "--log-level=debug", "--controllers=podgroups,subnets,synthesis,delivery", "--local-synthesizers", "--webhook-configuration=secrets")
	ns := cluster.Namespace(t, c)
	token := newToken(t, c, "secretive")
	must(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "given"}, StringData: map[string]string{"password": inputCanary}}))
	compose(t, c, ns, "leak", leak)
	compose(t, c, ns, "fail", fail)
	// It is ready before it serves metrics, and before the API server asks it.
	cluster.Eventually(t, "metrics are served", func() error {
		_, _, err := scrape(t.Context(), "http://"+m.Metrics+"/metrics", token)

		return err
	})
	cluster.Eventually(t, "the webhook is asked", func() error {
		if c.Create(t.Context(), &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bad"}, Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "Bad"}}},
		}, client.DryRunAll) == nil {
			return errors.New("it is not")
		}

		return nil
	})

	awaitTrouble(t, c, ns)
	key := &corev1.Secret{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "arbor-system", Name: "arbor-webhook-ca"}, key))
	canaries := map[string]string{"output": outputCanary, "number": numberCanary, "patch": patchCanary, "token": token, "input": inputCanary}
	for name, value := range key.Data {
		if strings.Contains(name, "key") {
			canaries["authority "+name] = strings.Split(string(value), "\n")[1]
		}
	}
	if len(canaries) < 6 {
		t.Fatalf("the authority of the webhooks has no key: %v", slices.Collect(keys(key.Data)))
	}
	seen := whatIsSeen(t, c, ns, m)
	for where, text := range seen {
		for what, canary := range canaries {
			if isKnown(what, where) {
				continue
			}
			for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s: there is the value of a Secret (%s): %s", where, what, text[max(0, at-200):min(len(text), at+100)])
				}
			}
		}
	}
	// Else the test checks the wrong place. It is not there while the program is tried again.
	cluster.Eventually(t, "what a program reports while it fails is on its composition", func() error {
		list := &enov1.CompositionList{}
		must(t, c.List(t.Context(), list, client.InNamespace(ns)))
		data, err := json.Marshal(list)
		if err == nil && !strings.Contains(string(data), base64.StdEncoding.EncodeToString([]byte(inputCanary))) {
			err = fmt.Errorf("there is %s", data)
		}

		return err
	})
}

// isKnown reports whether a value may be visible in a place: see docs/safety/security.md. What a
// program reports while it fails is on its composition and in an event. The API server logs what it
// rejects by itself.
func isKnown(what, where string) bool {
	said := where == "compositions" || where == "events" || strings.HasPrefix(where, "arbor delivery")

	return what == "input" && said || what == "number" && where == "kube-apiserver.log"
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// compose makes a Synthesizer of a script, and a Composition of it with a Secret.
func compose(t *testing.T, c client.Client, ns, name, script string) {
	t.Helper()
	must(t, c.Create(t.Context(), &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: ns + name}, Spec: enov1.SynthesizerSpec{
		Command: []string{"sh", "-c", script},
		Refs:    []enov1.Ref{{Key: "given", Resource: enov1.ResourceRef{Version: "v1", Kind: "Secret"}}},
	}}))
	must(t, c.Create(t.Context(), &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: enov1.CompositionSpec{
		Synthesizer: enov1.SynthesizerRef{Name: ns + name},
		Bindings:    []enov1.Binding{{Key: "given", Resource: enov1.ResourceBinding{Namespace: ns, Name: "given"}}},
	}}))
}

// awaitTrouble waits until everything has gone wrong that should go wrong, so that there is
// something to reveal.
func awaitTrouble(t *testing.T, c client.Client, ns string) {
	t.Helper()
	cluster.Eventually(t, "everything has failed", func() error {
		slices, events := &enov1.ResourceSliceList{}, &eventsv1.EventList{}
		must(t, c.List(t.Context(), slices, client.InNamespace(ns)))
		must(t, c.List(t.Context(), events, client.InNamespace(ns)))
		told := map[string]bool{}
		for _, e := range events.Items {
			told[e.Reason] = true
		}
		for _, reason := range []string{"NotDelivered", "SynthesisFailed", "OverridePassedOver"} {
			if !told[reason] {
				return fmt.Errorf("there is no event %s yet, only %v", reason, told)
			}
		}
		var failed []string
		for _, s := range slices.Items {
			for _, r := range s.Status.Resources {
				if r.ReconciliationError != nil {
					failed = append(failed, *r.ReconciliationError)
				}
			}
		}
		if !strings.Contains(strings.Join(failed, "\n"), "Secret "+ns+"/refused") {
			return fmt.Errorf("the server has not rejected the Secret yet, only: %q", failed)
		}

		return nil
	})
}

// whatIsSeen is everything that people see who may not see Secrets.
func whatIsSeen(t *testing.T, c client.Client, ns string, m *cluster.Manager) map[string]string {
	t.Helper()
	seen := map[string]string{"the log of the manager": m.Output(), "arbor up": server.Output()}
	logs, err := filepath.Glob(filepath.Join(server.Dir, "logs", "*.log"))
	must(t, err)
	for _, name := range logs {
		data, err := os.ReadFile(name)
		must(t, err)
		seen[filepath.Base(name)] = string(data)
	}
	_, seen["metrics"], err = scrape(t.Context(), "http://"+m.Metrics+"/metrics", "")
	must(t, err)
	slices := &enov1.ResourceSliceList{}
	must(t, c.List(t.Context(), slices, client.InNamespace(ns)))
	for i := range slices.Items {
		slices.Items[i].Spec = enov1.ResourceSliceSpec{} // that is where manifests are
	}
	for name, list := range map[string]client.ObjectList{
		"compositions": &enov1.CompositionList{}, "events": &eventsv1.EventList{}, "pod groups": &v2alpha2.PodGroupList{}, "slices": slices,
	} {
		if name != "slices" {
			must(t, c.List(t.Context(), list, client.InNamespace(ns)))
		}
		data, err := json.Marshal(list)
		must(t, err)
		seen[name] = string(data)
	}
	for _, args := range [][]string{
		{"audit"},
		{"delivery", "-A"},
		{"delivery", "diff", "leak", "-n", ns},
		{"delivery", "diff", "leak", "-n", ns, "-o", "json"},
		{"delivery", "history", "leak", "-n", ns},
		{"fields", "show", "secret/fine", "-n", ns},
	} {
		stdout, stderr, code := server.Arbor(t, args...)
		if stdout+stderr == "" || strings.Contains(stderr, "--help") {
			t.Fatalf("arbor %s prints nothing (%d): %s", strings.Join(args, " "), code, stderr)
		}
		seen["arbor "+strings.Join(args, " ")] = stdout + stderr
	}

	return seen
}
