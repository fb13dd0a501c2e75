package executorpod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	deliveryrules "github.com/arbor-control/arbor/internal/decide/delivery"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
	"github.com/arbor-control/arbor/internal/synthesis"
)

type options struct {
	socket, kubeconfig string
	timeout            time.Duration
	historyLimit       int
	// scope and inputNamespaces are the rules between tenants.
	scope           string
	inputNamespaces []string
	job             executor.Job
}

// jobFromEnvironment reads the composition and synthesis of a pod.
func jobFromEnvironment() executor.Job {
	return executor.Job{
		CompositionNamespace: os.Getenv("COMPOSITION_NAMESPACE"), CompositionName: os.Getenv("COMPOSITION_NAME"),
		SynthesisUUID: os.Getenv("SYNTHESIS_UUID"), Image: os.Getenv("IMAGE"),
	}
}

// publish runs one synthesis, unless that synthesis has ended already. The time of the synthesis begins
// now: the executor was started before.
func publish(ctx context.Context, o options, log io.Writer) error {
	over := time.Now().Add(o.timeout)
	if o.job.CompositionName == "" || o.job.CompositionNamespace == "" || o.job.SynthesisUUID == "" {
		return errors.New("the environment names no synthesis: COMPOSITION_NAMESPACE, COMPOSITION_NAME and SYNTHESIS_UUID must be set")
	}
	scope, err := tenancy.ParseScope(o.scope)
	if err != nil {
		return fmt.Errorf("--delivery-scope %q: %w", o.scope, err)
	}
	c, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	composition, synthesizer, why, err := look(ctx, c, o.job)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(log, "Nothing is done: %s\n", why)

		return nil
	}
	runner := synthesis.Runner{
		Client: c, Reader: c, Mapper: c.RESTMapper(), Executor: &executor.Socket{Path: o.socket}, Manifests: deliveryrules.NewReader(),
		Timeout: time.Until(over), Now: time.Now, HistoryLimit: o.historyLimit,
		Rules: tenancy.Rules{Scope: scope, InputNamespaces: o.inputNamespaces},
	}
	out := runner.Run(ctx, composition, synthesizer)
	switch {
	case out.Err == nil:
		fmt.Fprintln(log, decide.Made(o.job.SynthesisUUID, out.Resources))

		return nil
	case errors.Is(out.Err, synthesis.ErrSuperseded):
		fmt.Fprintf(log, "Nothing is promoted: %s\n", out.Err)

		return nil
	default:
		return errors.Join(errors.New(out.Reason()), out.MessageErr)
	}
}

// look reads what must be done, or why nothing is done.
func look(ctx context.Context, c client.Reader, job executor.Job) (*enov1.Composition, *enov1.Synthesizer, string, error) {
	composition, synthesizer := &enov1.Composition{}, &enov1.Synthesizer{}
	key := client.ObjectKey{Namespace: job.CompositionNamespace, Name: job.CompositionName}
	if err := c.Get(ctx, key, composition); err != nil {
		return nil, nil, fmt.Sprintf("Composition %s does not exist", key), client.IgnoreNotFound(err)
	}
	if !decide.Wanted(&composition.Status, job.SynthesisUUID) || composition.DeletionTimestamp != nil {
		return nil, nil, fmt.Sprintf("synthesis %s of Composition %s is not in flight any more", job.SynthesisUUID, key), nil
	}
	if err := c.Get(ctx, client.ObjectKey{Name: composition.Spec.Synthesizer.Name}, synthesizer); err != nil {
		return nil, nil, fmt.Sprintf("Synthesizer %q does not exist", composition.Spec.Synthesizer.Name), client.IgnoreNotFound(err)
	}
	if synthesizer.Spec.Image != job.Image {
		return nil, nil, fmt.Sprintf("the image of Synthesizer %q is %q now, and this pod has %q", synthesizer.Name, synthesizer.Spec.Image, job.Image), nil
	}

	return composition, synthesizer, "", nil
}

// connect makes a client that reads from the API server.
func connect(kubeconfig string) (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "arbor-executor"
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := enov1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register types: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster: %w", err)
	}

	return c, nil
}
