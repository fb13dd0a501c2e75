package serving

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/names"
)

// failingOnce is a cluster in which managers of another version have registered their
// webhooks, and do so again after each write. The first write fails.
type failingOnce struct {
	client.Client

	written []string // the name of the first webhook of each write
}

func (c *failingOnce) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	config, ok := o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok {
		return fmt.Errorf("unexpected read of %T", o)
	}
	config.ObjectMeta = metav1.ObjectMeta{Name: "arbor", Annotations: map[string]string{names.RegistrationAnnotation: "other"}}
	config.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "old.b.c"}}

	return nil
}

func (c *failingOnce) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	config, ok := o.(*admissionregistrationv1ac.ValidatingWebhookConfigurationApplyConfiguration)
	if !ok {
		return fmt.Errorf("unexpected write of %T", o)
	}
	if c.written = append(c.written, *config.Webhooks[0].Name); len(c.written) == 1 {
		return errors.New("the API server is not available")
	}

	return nil
}

// A leader whose first write fails registers its webhooks with the next one.
func TestRegisterAfterFailure(t *testing.T) {
	c := &failingOnce{}
	clock := testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	elected := make(chan struct{})
	close(elected)
	draining := false
	k := New(c, Options{
		Configuration: "arbor", Webhooks: hooks, Address: Address{Service: "svc", Namespace: "ns"}, Settings: DefaultSettings(),
		Elected: func() <-chan struct{} { return elected }, LeaderElection: true, Draining: func() bool { return draining },
	})
	k.clock = clock

	steps := []struct {
		reason string
		after  time.Duration
		want   string
		fails  bool
		drains bool
	}{
		{"The leader replaces the registration, which fails.", 0, "a.b.c", true, false},
		{"It tries again.", time.Second, "a.b.c", false, false},
		{"The others have overwritten it: it leaves that for a while.", time.Second, "old.b.c", false, false},
		{"And replaces it again.", reclaim, "a.b.c", false, false},
		{"It is about to end, and the others lead.", reclaim, "old.b.c", false, true},
	}
	for i, s := range steps {
		clock.SetTime(clock.Now().Add(s.after))
		draining = s.drains
		_, err := k.register(t.Context(), []byte("trust"))
		if (err != nil) != s.fails {
			t.Errorf("%s\nerror %v", s.reason, err)
		}
		if len(c.written) != i+1 || c.written[i] != s.want {
			t.Fatalf("%s\nwritten %v, want %s", s.reason, c.written, s.want)
		}
	}
}
