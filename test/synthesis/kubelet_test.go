package synthesis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	arborImage = "arbor-executor:test"
	account    = "arbor-synthesizer"
	unpullable = "registry.invalid/no-such-image"
	slow       = "registry.invalid/slow"
)

// A kubelet plays the one of a node. It runs the containers of pods as processes
// of this machine: with their commands, their environment and nothing else, in a
// folder that stands for the shared volume, and with a token of the pod's account
// for those that mount one.
type kubelet struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	binary    string

	mu sync.Mutex
	// pods by uid, and those that there ever were by the uuid of their synthesis.
	running map[types.UID]context.CancelFunc
	made    map[string]map[types.UID]corev1.Pod
	all     sync.WaitGroup
	// Until held is closed, pods are neither bound nor run.
	held chan struct{}
	// Until pulled is closed, the image slow is not there.
	pulled chan struct{}
}

// newKubelet makes a namespace for pods, and looks after them until the test ends. Their
// account and its permissions are made with those of the manager, by the chart.
func newKubelet(t *testing.T) *kubelet {
	t.Helper()
	binary, err := cluster.Binary("arbor-executor", "ARBOR_EXECUTOR")
	must(t, err)
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Client(t, nil).Scheme()})
	must(t, err)
	k := &kubelet{
		t: t, client: c, binary: binary, namespace: cluster.Namespace(t, c),
		running: map[types.UID]context.CancelFunc{}, made: map[string]map[types.UID]corev1.Pod{}, held: make(chan struct{}), pulled: make(chan struct{}),
	}
	// Without a node of this name its pods would be taken for those of one that is gone, and be
	// deleted by the garbage collector of pods. No other scheduler places pods on it.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}, Spec: corev1.NodeSpec{Unschedulable: true}}
	must(t, c.Create(t.Context(), node))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	events, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(k.namespace), client.MatchingLabels{"app.kubernetes.io/managed-by": "eno"})
	must(t, err)
	k.all.Go(func() {
		for e := range events.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				k.look(ctx, e.Type, pod)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		events.Stop()
		k.all.Wait()
		_ = c.Delete(context.Background(), node)
	})

	return k
}

// release lets pods run.
func (k *kubelet) release() { close(k.held) }

// args are those of managers whose pods are here. They have time: this kubelet may be
// slow, and a pod that is created again for that would be a second one.
func (k *kubelet) args(more ...string) []string {
	return append([]string{
		"--controllers=synthesis", "--webhooks=false", "--rollout-cooldown=0s",
		"--executor-image=" + arborImage, "--synthesizer-pod-namespace=" + k.namespace,
		"--container-creation-ttl=10m", "--synthesis-timeout=10m",
	}, more...)
}

func (k *kubelet) look(ctx context.Context, what watch.EventType, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	uuid := pod.Labels[enov1.LabelSynthesisUUID]
	if k.made[uuid] == nil {
		k.made[uuid] = map[types.UID]corev1.Pod{}
	}
	k.made[uuid][pod.UID] = *pod
	stop := k.running[pod.UID]
	switch {
	case what == watch.Deleted || pod.DeletionTimestamp != nil:
		if stop != nil {
			stop()
		}
	case stop == nil:
		running, cancel := context.WithCancel(ctx)
		k.running[pod.UID] = cancel
		k.all.Go(func() {
			defer cancel()
			if err := k.run(running, pod); err != nil && running.Err() == nil && k.stays(ctx, pod) {
				k.t.Errorf("pod %s: %v", pod.Name, err)
			}
			<-running.Done()
			// A client that deletes a pod waits for the kubelet to have ended it.
			_ = k.client.Delete(context.WithoutCancel(ctx), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		})
	}
}

// stays reports whether a pod is there and must stay. The API server knows earlier than a watch.
func (k *kubelet) stays(ctx context.Context, pod *corev1.Pod) bool {
	now := &corev1.Pod{}
	err := k.client.Get(ctx, client.ObjectKeyFromObject(pod), now)

	return err == nil && now.UID == pod.UID && now.DeletionTimestamp == nil
}

// run runs a pod from its binding to its end.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	select {
	case <-k.held:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := k.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: k.namespace}})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pod-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := k.token(ctx, pod, filepath.Join(dir, "kubeconfig")); err != nil {
		return err
	}
	// It has heard of it.
	st := &corev1.PodStatus{Phase: corev1.PodPending, StartTime: new(metav1.Now()), InitContainerStatuses: []corev1.ContainerStatus{{
		Name: pod.Spec.InitContainers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
	}}}
	if err := k.report(ctx, pod, st); err != nil {
		return err
	}
	st.InitContainerStatuses = nil
	for _, c := range pod.Spec.InitContainers {
		state := k.execute(ctx, dir, c)
		st.InitContainerStatuses = append(st.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state})
		if state.Terminated == nil || state.Terminated.ExitCode != 0 {
			st.Phase = corev1.PodFailed

			return k.report(ctx, pod, st)
		}
	}
	if err := k.pull(ctx, pod, st); err != nil {
		return err
	}
	for _, c := range pod.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
		if c.Image == unpullable {
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}}
		} else {
			st.Phase = corev1.PodRunning
		}
		st.ContainerStatuses = append(st.ContainerStatuses, s)
	}

	return k.containers(ctx, pod, st, dir)
}

// pull waits for the image slow, if a container has it.
func (k *kubelet) pull(ctx context.Context, pod *corev1.Pod, st *corev1.PodStatus) error {
	if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == slow }) {
		return nil
	}
	for _, c := range pod.Spec.Containers {
		st.ContainerStatuses = append(st.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	if err := k.report(ctx, pod, st); err != nil {
		return err
	}
	st.ContainerStatuses = nil
	select {
	case <-k.pulled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// containers runs those that can be, and reports how each ends.
func (k *kubelet) containers(ctx context.Context, pod *corev1.Pod, st *corev1.PodStatus, dir string) error {
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	if err := k.report(ctx, pod, st); err != nil {
		return err
	}
	st.Phase = corev1.PodSucceeded
	for i, c := range pod.Spec.Containers {
		if st.ContainerStatuses[i].State.Running == nil {
			st.Phase = corev1.PodPending

			continue
		}
		all.Go(func() {
			state := k.execute(ctx, dir, c)
			mu.Lock()
			defer mu.Unlock()
			st.ContainerStatuses[i].State = state
			if state.Terminated.ExitCode != 0 && st.Phase == corev1.PodSucceeded {
				st.Phase = corev1.PodFailed
			}
		})
	}
	all.Wait()

	return k.report(ctx, pod, st)
}

// report writes the status of a pod.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, st *corev1.PodStatus) error {
	was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	is := was.DeepCopy()
	is.Status = *st.DeepCopy()

	return client.IgnoreNotFound(k.client.Status().Patch(ctx, is, client.MergeFrom(was)))
}

// execute runs one container. Its image is this machine, with the program of
// Arbor in it, and its shared folder is dir.
func (k *kubelet) execute(ctx context.Context, dir string, c corev1.Container) corev1.ContainerState {
	var args []string
	for _, a := range slices.Concat(c.Command, c.Args) {
		args = append(args, strings.ReplaceAll(a, "/eno/", dir+"/"))
	}
	if c.Image == arborImage && args[0] == "/arbor-executor" {
		args[0] = k.binary
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+strings.ReplaceAll(e.Value, "$$", "$"))
	}
	for _, m := range c.VolumeMounts {
		if strings.HasPrefix(m.MountPath, "/var/run/secrets/") {
			cmd.Env = append(cmd.Env, "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
		}
	}
	if dir := os.Getenv("ARBOR_COVERDIR"); dir != "" {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+dir)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	began := metav1.Now()
	err := cmd.Run()
	t := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: began, FinishedAt: metav1.Now()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.ExitCode, t.Reason, t.Message = int32(exit.ExitCode()), "Error", said.String()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			t.ExitCode = 128 + int32(status.Signal())
		}
	} else if err != nil {
		t.ExitCode, t.Reason, t.Message = 128, "StartError", err.Error()
	}

	return corev1.ContainerState{Terminated: t}
}

// token writes a kubeconfig with a token of the pod's account.
func (k *kubelet) token(ctx context.Context, pod *corev1.Pod, path string) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(600)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	if err := k.client.SubResource("token").Create(ctx, sa, request); err != nil {
		return fmt.Errorf("cannot get a token: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.Config.Host, CertificateAuthority: server.Config.CAFile, CertificateAuthorityData: server.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"

	return clientcmd.WriteToFile(*config, path)
}

// pods returns all that were ever made for a synthesis.
func (k *kubelet) pods(uuid string) []corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []corev1.Pod
	for pod := range maps.Values(k.made[uuid]) {
		all = append(all, pod)
	}

	return all
}

// once fails if a synthesis had more than one pod.
func (k *kubelet) once() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for uuid, pods := range k.made {
		if len(pods) != 1 {
			k.t.Errorf("synthesis %s had %d pods", uuid, len(pods))
		}
	}
}

// empty waits until there are no pods.
func (k *kubelet) empty() {
	k.t.Helper()
	cluster.Eventually(k.t, "no pod is left", func() error {
		list := &corev1.PodList{}
		if err := k.client.List(k.t.Context(), list, client.InNamespace(k.namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d pods are there, such as %s, %+v", len(list.Items), list.Items[0].Name, list.Items[0].Status)
		}

		return nil
	})
}
