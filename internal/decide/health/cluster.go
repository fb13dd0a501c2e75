package health

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/arbor-control/arbor/api/names"
)

// definitions checks the kinds of the components that run.
func (f Facts) definitions(on []Part) []Check {
	const about = "definition"
	if f.Definitions.Err != nil {
		return unknown(about, "", f.Definitions.Err)
	}
	var all []Check
	seen := map[string]bool{}
	for _, p := range on {
		for _, want := range p.Definitions {
			if seen[want.Name] {
				continue
			}
			seen[want.Name] = true
			c := Check{About: about, Object: want.Name, State: OK}
			have := f.Definitions.Is[want.Name]
			if have == nil {
				c.State, c.Message, c.Fix = Problem, "it is not installed, and "+p.Name+" needs it", "run the manager with --crds=install, or install it"
			} else {
				c.State, c.Message, c.Fix = definition(have, want)
			}
			all = append(all, c)
		}
	}

	return all
}

// definition compares a CRD with that of this release.
func definition(have, want *apiextensionsv1.CustomResourceDefinition) (State, string, string) {
	established := slices.ContainsFunc(have.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	missing, same := compare(have, want)
	ours := have.Labels[names.ManagedByLabel] == names.Arbor
	stored := slices.IndexFunc(have.Status.StoredVersions, func(stored string) bool { return find(want, stored) == nil })
	switch {
	case !established:
		return Problem, "it is not served", fmt.Sprintf("kubectl describe crd %s shows why", have.Name)
	case missing != "":
		return Problem, fmt.Sprintf("version %s is not served", missing), "upgrade it"
	case stored >= 0:
		return Warning, fmt.Sprintf("objects may be stored in version %s, which this release does not know", have.Status.StoredVersions[stored]),
			"migrate them to the version that is stored now before you go on"
	case !ours && !same:
		return OK, "somebody else installed it, and its schema is not that of this release: Arbor does not change it", ""
	case !ours:
		return OK, "somebody else installed it", ""
	case !same:
		return Warning, "its schema is not that of this release", "upgrade the manager, which brings its own, or use an arbor of its release"
	}

	return OK, "it is served, with the schema of this release", ""
}

// compare returns the first version that is wanted and not served, and whether the schemas of the
// rest are the same.
func compare(have, want *apiextensionsv1.CustomResourceDefinition) (missing string, same bool) {
	same = true
	for _, w := range want.Spec.Versions {
		h := find(have, w.Name)
		if h == nil || !h.Served {
			return w.Name, false
		}
		same = same && equality.Semantic.DeepEqual(h.Schema, w.Schema)
	}

	return "", same
}

func find(d *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == version {
			return &d.Spec.Versions[i]
		}
	}

	return nil
}

// webhooks are about those that the parts that run need.
func (f Facts) webhooks(on []Part, now time.Time) []Check {
	const about = "webhook"
	if f.Webhooks.Err != nil {
		return unknown(about, "", f.Webhooks.Err)
	}
	var all []Check
	for _, p := range on {
		for _, name := range p.Webhooks {
			c := Check{About: about, Object: name, State: OK}
			c.State, c.Message, c.Fix = f.webhook(name, now)
			all = append(all, c)
		}
	}

	return all
}

func (f Facts) webhook(name string, now time.Time) (State, string, string) {
	var bundle []byte
	registered := false
	if w := f.Webhooks.Is; w != nil {
		for i := range w.Webhooks {
			if w.Webhooks[i].Name == name {
				registered, bundle = true, w.Webhooks[i].ClientConfig.CABundle
			}
		}
	}
	if !registered {
		return Problem, "it is not registered: bad objects are stored", "run the manager with --webhooks, and see that it is ready"
	}
	if !valid(bundle, now) {
		return Problem, "the API server trusts no certificate of it that is valid now", "restart the manager, which makes new ones; with cert-manager, see that its injector runs"
	}
	answer, asked := f.Answers.Is[name]
	switch {
	case f.Answers.Err != nil:
		return Unknown, "it is registered; whether it answers could not be tried: " + f.Answers.Err.Error(), "run it as a user who may create objects in namespace default"
	case !asked:
		return OK, "it is registered", ""
	case answer != "":
		return Problem, "it does not refuse what it should: " + answer, "see that the API server reaches the manager: Service, endpoints, network policy"
	}

	return OK, "it is registered, and refuses what it should", ""
}

// authority is about the certificates of the webhooks.
func (f Facts) authority(on []Part, now time.Time) []Check {
	const about = "certificates"
	s := f.Secret.Is
	hooks := slices.ContainsFunc(on, func(p Part) bool { return len(p.Webhooks) > 0 })
	switch {
	case !hooks:
		return nil
	case f.Secret.Err != nil:
		return unknown(about, "", f.Secret.Err)
	case s == nil:
		return nil // another program creates them
	}
	c := Check{About: about, Object: s.Namespace + "/" + s.Name}
	certificate := first(s.Data["ca.crt"])
	switch {
	case certificate == nil:
		c.State, c.Message, c.Fix = Problem, "ca.crt is not a certificate", "delete the Secret: the manager creates another"
	case now.After(certificate.NotAfter):
		c.State, c.Message, c.Fix = Problem, fmt.Sprintf("the authority ended %s ago", ago(now, certificate.NotAfter)), "see that a manager runs: it makes another"
	case now.After(certificate.NotAfter.Add(-certificate.NotAfter.Sub(certificate.NotBefore) / 4)):
		// It should have been replaced after two thirds.
		c.State, c.Message, c.Fix = Warning, fmt.Sprintf("the authority ends in %s, and should have been replaced before", ago(certificate.NotAfter, now)), "see that a manager runs: it creates another"
	default:
		c.State, c.Message = OK, fmt.Sprintf("the authority lives for another %s", ago(certificate.NotAfter, now))
	}

	return []Check{c}
}

// valid reports whether a bundle has a certificate that is valid now.
func valid(bundle []byte, now time.Time) bool {
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return false
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
			return true
		}
	}
}

func first(bundle []byte) *x509.Certificate {
	block, _ := pem.Decode(bundle)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}

	return c
}

// Worst is the worst state of all.
func Worst(all []Check) State {
	order := []State{OK, Unknown, Warning, Problem}
	worst := OK
	for _, c := range all {
		if slices.Index(order, c.State) > slices.Index(order, worst) {
			worst = c.State
		}
	}

	return worst
}

// Summary counts what is not ok, in words.
func Summary(all []Check) string {
	counts := map[State]int{}
	for _, c := range all {
		counts[c.State]++
	}
	var parts []string
	for _, s := range []State{Problem, Warning} {
		if n := counts[s]; n == 1 {
			parts = append(parts, "1 "+string(s))
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	if n := counts[Unknown]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("all %d checks are ok", len(all))
	}

	return fmt.Sprintf("%s in %d checks", strings.Join(parts, ", "), len(all))
}
