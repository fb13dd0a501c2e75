package podgroups_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const namespace = "arbor-system"

func getRegistration(t *testing.T, c client.Client) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "arbor"}, config); err != nil {
		t.Fatal(err)
	}

	return config
}

func unregister(t *testing.T, c client.Client) {
	t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "arbor"}}
	if err := client.IgnoreNotFound(c.Delete(t.Context(), config)); err != nil {
		t.Fatal(err)
	}
	// The API server notices a little later than the deletion.
	probe := group(metav1.NamespaceDefault, "probe", sub("Refused"))
	cluster.Eventually(t, "no webhook is asked any more", func() error {
		err := c.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		if apierrors.IsNotFound(err) || err == nil {
			return nil
		}

		return err
	})
}

func getSecret(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "arbor-webhook-ca"}, secret); err != nil {
		t.Fatal(err)
	}

	return secret
}

// When the webhook is away, nothing unchecked gets in, the answer reports why, and
// what is there can still go.
func TestWebhookDown(t *testing.T) {
	c := newClient(t, nil)
	m := startManager(t)
	ns := cluster.Namespace(t, c)
	pg := group(ns, "there", sub("master"))
	pg.Finalizers = []string{finalizer}
	if err := c.Create(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
	m.Kill()

	err := c.Create(t.Context(), group(ns, "new", sub("master")))
	if err == nil || !strings.Contains(err.Error(), `failed calling webhook "podgroups.admission.arbor"`) {
		t.Errorf("creation must be rejected with the webhook's name, got %v", err)
	}
	if err := c.Delete(t.Context(), pg); err != nil {
		t.Errorf("deletion must work: %v", err)
	}
	if err := update(t, c, pg, func(pg *v2alpha2.PodGroup) { pg.Finalizers = nil }); err != nil {
		t.Errorf("what is being deleted must be able to go: %v", err)
	}

	startManager(t)
	if err := c.Create(t.Context(), group(ns, "new", sub("master"))); err != nil {
		t.Errorf("it is back, creation must work: %v", err)
	}
}

// The certificate authority is replaced twice under a stream of requests, and
// not one of them fails.
func TestRotation(t *testing.T) {
	c := newClient(t, nil)
	forgetCertificates(t, c)
	// A new authority is trusted for a 24th of its life before it signs, and a
	// certificate is replaced a 12th before its end: what is late has that long.
	startManager(t, "--webhook-ca-lifetime=60s")
	ns := cluster.Namespace(t, c)

	bundles := map[string]bool{}
	for i := 0; len(bundles) < 3; i++ {
		if err := c.Create(t.Context(), group(ns, fmt.Sprintf("g-%d", i), sub("master")), client.DryRunAll); err != nil {
			t.Fatalf("request %d failed, after %d authorities: %v", i, len(bundles), err)
		}
		if i%50 == 0 {
			bundles[string(getSecret(t, c).Data["ca.crt"])] = true
		}
	}
	cluster.Eventually(t, "the old authority is trusted next to the new one", func() error {
		got := getRegistration(t, c).Webhooks[0].ClientConfig.CABundle
		if bytes.Count(got, []byte("BEGIN CERTIFICATE")) != 2 {
			return fmt.Errorf("trusted is\n%s", got)
		}

		return nil
	})
}

// Two replicas show certificates of one authority, so either can answer.
func TestReplicasShareAnAuthority(t *testing.T) {
	c := newClient(t, nil)
	forgetCertificates(t, c)
	// Started at the same moment, so that they race for the Secret.
	a, b := server.LaunchManager(t, podGroupsOnly), server.LaunchManager(t, podGroupsOnly)
	for _, m := range []*cluster.Manager{a, b} {
		must(t, m.Await())
		cluster.Eventually(t, "its certificate is trusted", func() error {
			if err := registered(t, c); err != nil {
				return err
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(getRegistration(t, c).Webhooks[0].ClientConfig.CABundle)
			dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}}
			conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", m.WebhookPort))
			if err != nil {
				return err
			}

			return conn.Close()
		})
	}
	ns := cluster.Namespace(t, c)
	awaitDenial(t, c, ns)
	if err := c.Create(t.Context(), group(ns, "g", sub("master"))); err != nil {
		t.Error(err)
	}

	// Whichever of them the API server was told of: when it ends, the other takes over.
	for _, m := range []*cluster.Manager{a, b} {
		if strings.Contains(*getRegistration(t, c).Webhooks[0].ClientConfig.URL, fmt.Sprintf(":%d/", m.WebhookPort)) {
			m.Kill()

			break
		}
	}
	cluster.Eventually(t, "the other one is asked", func() error {
		return c.Create(t.Context(), group(ns, "later", sub("master")), client.DryRunAll)
	})
}

// A Secret that a user deletes or damages, and a registration that a user edits, are repaired.
func TestServingHeals(t *testing.T) {
	c := newClient(t, nil)
	startManager(t).MayBeRefused() // between a deletion and the upgrade
	ns := cluster.Namespace(t, c)

	cases := map[string]struct {
		reason string
		harm   func(t *testing.T) error
		healed func() error
	}{
		"SecretDeleted": {
			reason: "Deleting the Secret is how people ask for new certificates.",
			harm:   func(t *testing.T) error { return c.Delete(t.Context(), getSecret(t, c)) },
			healed: func() error {
				return c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "arbor-webhook-ca"}, &corev1.Secret{})
			},
		},
		"SecretDamaged": {
			reason: "Rubbish in the Secret is as good as none.",
			harm: func(t *testing.T) error {
				s := getSecret(t, c)
				s.Data = map[string][]byte{"ca.crt": []byte("rubbish")}

				return c.Update(t.Context(), s)
			},
			healed: func() error {
				s := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "arbor-webhook-ca"}, s); err != nil {
					return err
				}
				if len(s.Data["ca.key"]) == 0 {
					return errors.New("there is no key")
				}

				return nil
			},
		},
		"RegistrationEdited": {
			reason: "A webhook that was made to fail open would let bad trees in.",
			harm: func(t *testing.T) error {
				w := getRegistration(t, c)
				ignore := admissionregistrationv1.Ignore
				w.Webhooks[0].FailurePolicy = &ignore
				w.Webhooks[0].ClientConfig.CABundle = nil

				return c.Update(t.Context(), w)
			},
			healed: func() error {
				w := getRegistration(t, c).Webhooks[0]
				if *w.FailurePolicy != admissionregistrationv1.Fail || len(w.ClientConfig.CABundle) == 0 {
					return errors.New("it fails open or has no CA")
				}

				return nil
			},
		},
		"RegistrationDeleted": {
			reason: "Without a registration no webhook is called; the next upgrade of the release makes an empty one.",
			harm: func(t *testing.T) error {
				if err := c.Delete(t.Context(), getRegistration(t, c)); err != nil {
					return err
				}
				_, err := server.Grant(t.Context(), podGroupsOnly)

				return err
			},
			healed: func() error { return registered(t, c) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// What healed a moment ago may still be written to.
			cluster.Eventually(t, "it is harmed", func() error { return tc.harm(t) })
			cluster.Eventually(t, "it is healed: "+tc.reason, tc.healed)
			awaitDenial(t, c, ns)
		})
	}
}

// registered reports whether there is a registration with something in it.
func registered(t *testing.T, c client.Client) error {
	t.Helper()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "arbor"}, config); err != nil {
		return err
	}
	if len(config.Webhooks) == 0 {
		return errors.New("the registration is empty")
	}

	return nil
}

// Without Helm only the manager creates a registration. The chart does not give it that right,
// others may.
func TestRegistrationOfItsOwn(t *testing.T) {
	c := newClient(t, nil)
	unregister(t, c)
	server.StartManager(t, podGroupsOnly, server.Administrator())
	cluster.Eventually(t, "it is made", func() error { return registered(t, c) })
	must(t, c.Delete(t.Context(), getRegistration(t, c)))
	cluster.Eventually(t, "it is made again", func() error { return registered(t, c) })
}

// Two managers with different webhooks, as in a rollout, do not overwrite each other's
// registration in a loop: the one that was started last has it.
func TestTwoVersions(t *testing.T) {
	c := newClient(t, nil)
	unregister(t, c)
	server.StartManager(t, podGroupsOnly, server.Administrator())
	cluster.Eventually(t, "the first one registers its webhooks", func() error { return registered(t, c) })
	server.StartManager(t, "--controllers=podgroups,subnets", "--webhook-timeout-seconds=4", server.Administrator())
	all := func() error {
		if w := getRegistration(t, c).Webhooks; len(w) != 3 || *w[0].TimeoutSeconds != 4 {
			return fmt.Errorf("there are %d webhooks, the first with a timeout of %d s", len(w), *w[0].TimeoutSeconds)
		}

		return nil
	}
	cluster.Eventually(t, "the second one registers its webhooks", all)

	// Both see each of these changes, and only the second one corrects it.
	before := getRegistration(t, c).Generation
	const changes = 5
	for range changes {
		cluster.Eventually(t, "it is edited", func() error {
			w := getRegistration(t, c)
			*w.Webhooks[0].TimeoutSeconds = 9

			return c.Update(t.Context(), w)
		})
		cluster.Eventually(t, "it is corrected", all)
	}
	if got := getRegistration(t, c).Generation - before; got > 2*changes {
		t.Errorf("%d writes after %d changes", got, changes)
	}
}

// The break-glass label of a namespace works while managers run, and while none does.
func TestSkipAdmission(t *testing.T) {
	c := newClient(t, nil)
	m := startManager(t)
	ns := cluster.Namespace(t, c)
	awaitDenial(t, c, ns)
	label := func(value any) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata": {"labels": {"arbor-control.dev/skip-admission": %v}}}`, value)
		must(t, c.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	unreviewed := func() error { return c.Create(t.Context(), group(ns, "bad", sub("Refused")), client.DryRunAll) }
	label(`"true"`)
	cluster.Eventually(t, "nothing is reviewed", unreviewed)
	label("null")
	awaitDenial(t, c, ns)
	m.Kill()
	label(`"true"`)
	cluster.Eventually(t, "nothing waits for a manager that is away", unreviewed)
}

// forgetCertificates makes the next manager start with none.
func forgetCertificates(t *testing.T, c client.Client) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "arbor-webhook-ca"}}
	must(t, client.IgnoreNotFound(c.Delete(t.Context(), secret)))
	must(t, client.IgnoreNotFound(c.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "arbor"}})))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
