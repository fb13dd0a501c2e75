package chaos_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	workload = "web"
	old      = "Go-http-client"
	tool     = "base-os-bash"

	readRound = `round=$(sed 's/.*"round":"\([0-9]*\)".*/\1/')
`
	// mapsProgram makes ConfigMaps that have the round of their input. Every third is
	// left out, another one each time. One has a finalizer: the next round may want it while
	// it is being deleted.
	mapsProgram = readRound + `printf '{"kind":"ResourceList","items":['
for i in 0 1 2 3 4 5; do
  if [ $(( (i + round) % 3 )) -ne 0 ]; then
    finalizers=
    if [ $i -eq 5 ]; then finalizers='"chaos.example.com/hold"'; fi
    printf '%s{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%s","namespace":"%s","finalizers":[%s],"annotations":{"eno.azure.io/readiness-group":"%s"}},"data":{"round":"%s"}}' \
      "$comma" "$COMPOSITION_NAME" $i "$COMPOSITION_NAMESPACE" "$finalizers" $((i % 2)) "$round"
    comma=,
  fi
done
printf ']}'`
	// bulkProgram makes ConfigMaps of 8 KiB.
	bulkProgram = `awk -v name="$COMPOSITION_NAME" -v ns="$COMPOSITION_NAMESPACE" -v n=100 'BEGIN {
  for (i = 0; i < 8192; i++) text = text "x"
  printf "{\"kind\":\"ResourceList\",\"items\":["
  for (i = 0; i < n; i++) printf "%s{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s-%d\",\"namespace\":\"%s\"},\"data\":{\"text\":\"%s\"}}", i ? "," : "", name, i, ns, text
  printf "]}"
}'`
	// workloadProgram names an image of the tool in even rounds, and not the tool in odd ones. The
	// rest of the tool belongs to another client.
	workloadProgram = readRound + `tools=
if [ $((round % 2)) -eq 0 ]; then tools='"initContainers":[{"name":"base-os-bash","image":"base:'$round'"}],'; fi
printf '{"kind":"ResourceList","items":[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"%s","labels":{"by":"eno"}},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{%s"containers":[{"name":"web","image":"web:%s"}]}}}}]}' \
  "$COMPOSITION_NAMESPACE" "$tools" "$round"`
)

// kindsOfLoad are those that come and go.
var kindsOfLoad = map[string]schema.GroupVersionKind{
	v1alpha1.SubnetClaimKind:     v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetClaimKind),
	v1alpha1.SubnetPoolClaimKind: v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolClaimKind),
	v2alpha2.PodGroupKind:        v2alpha2.GroupVersion.WithKind(v2alpha2.PodGroupKind),
	enov1.CompositionKind:        enov1.GroupVersion.WithKind(enov1.CompositionKind),
}

func mapsOf(ns, composition string, round int) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for k := range 6 {
		if (k+round)%3 != 0 {
			all = append(all, unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"namespace": ns, "name": fmt.Sprintf("%s-%d", composition, k)},
				"data":     map[string]any{"round": strconv.Itoa(round)},
			}})
		}
	}

	return all
}

// dropped is the workload in an odd round: without the tool, and with the fields that other clients
// set in it.
func dropped(ns string, round int) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": ns, "name": workload, "labels": map[string]any{"team": "a", "by": "eno"}},
		"spec": map[string]any{"replicas": int64(0), "template": map[string]any{"spec": map[string]any{
			"initContainers": []any{},
			"containers":     []any{map[string]any{"name": "web", "image": fmt.Sprintf("web:%d", round)}},
		}}},
	}}
}

func (l *load) composition(name, synthesizer, input string) *enov1.Composition {
	return &enov1.Composition{ObjectMeta: l.meta(name), Spec: enov1.CompositionSpec{
		Synthesizer: enov1.SynthesizerRef{Name: l.ns + "-" + synthesizer},
		Bindings:    []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: l.ns, Name: "in-" + input}}},
	}}
}

// furnish makes everything that stays. A manager must have started once.
func (l *load) furnish() {
	l.Helper()
	create := func(o client.Object, options ...client.CreateOption) {
		l.Helper()
		must(l, l.Create(l.Context(), o, options...))
	}
	create(&v1alpha1.SubnetPool{ObjectMeta: l.meta("p"), Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"}})
	for name, program := range map[string]string{"maps": mapsProgram, "workload": workloadProgram} {
		create(l.synthesizer(name, "sh", "-c", program))
	}
	input := func(of string) {
		create(&corev1.ConfigMap{ObjectMeta: l.meta("in-" + of), Data: map[string]string{"round": "0"}})
	}
	input("guest")
	for i := range compositions {
		name := fmt.Sprintf("app-%d", i)
		input(name)
		create(l.composition(name, "maps", name))
	}
	tools := []corev1.Container{{Name: tool, Image: "base:old", Command: []string{"sh"}, ImagePullPolicy: corev1.PullAlways}}
	labels := map[string]string{"app": workload}
	d := &appsv1.Deployment{ObjectMeta: l.meta(workload), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			InitContainers: tools, Containers: []corev1.Container{{Name: "web", Image: "web:old"}},
		}},
	}}
	d.Labels = map[string]string{"team": "a"}
	create(d, client.FieldOwner(old))
	input(workload)
	create(l.composition(workload, "workload", workload))
	l.witness()
	l.furnishDeliveries(create)
	// From here on the tool is there only if the program names it.
	cluster.Eventually(l, "the workload is taken over", func() error {
		if image, err := l.tool(l.Context(), d); err != nil || image != "base:0" {
			return fmt.Errorf("the image of the tool is %q (%w)", image, err)
		}

		return nil
	})
}

// warm waits until Kubernetes' garbage collector has found Arbor's kinds, which it looks
// for twice a minute: Subnets of claims that are gone wait for it.
func (l *load) warm() {
	l.Helper()
	o := &v1alpha1.SubnetClaim{ObjectMeta: l.meta("warm"), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "warm", BlockSize: new(int32(28))}}
	must(l, l.Create(l.Context(), o))
	cluster.Eventually(l, "the first claim is bound", func() error {
		if err := l.Get(l.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.Phase != v1alpha1.ClaimBound {
			return fmt.Errorf("it is %+v (%w)", o.Status, err)
		}

		return nil
	})
	must(l, l.Delete(l.Context(), o))
	cluster.Eventually(l, "its Subnet is collected", func() error {
		all := &v1alpha1.SubnetList{}
		if err := l.List(l.Context(), all, client.InNamespace(l.ns)); err != nil || len(all.Items) > 0 {
			return fmt.Errorf("there are %d (%w)", len(all.Items), err)
		}

		return nil
	})
}

// tool reads the workload, and returns the image of its tool.
func (l *load) tool(ctx context.Context, d *appsv1.Deployment) (string, error) {
	if err := l.Get(ctx, client.ObjectKey{Namespace: l.ns, Name: workload}, d); err != nil {
		return "", err
	}
	for _, c := range d.Spec.Template.Spec.InitContainers {
		return c.Image, nil
	}

	return "", nil
}

// workload goes one step: an even round follows when the tool is gone; when it is there with the
// image of the round, another client writes a part of it, and an odd one follows. While no manager
// delivers, nothing must be done.
func (l *load) workload(ctx context.Context) {
	d := &appsv1.Deployment{}
	image, err := l.tool(ctx, d)
	if err != nil {
		return
	}
	l.mu.Lock()
	round := l.rounds[workload]
	l.mu.Unlock()
	switch {
	case image == "" && round%2 == 1:
		_ = l.input(ctx, workload, 1)
	case image == fmt.Sprintf("base:%d", round):
		d.Spec.Template.Spec.InitContainers[0].Command = strings.Fields(fmt.Sprintf("sh -c %d", round))
		if l.Update(ctx, d, client.FieldOwner(old)) == nil {
			_ = l.input(ctx, workload, 1)
		}
	default:
		// The last writing may not have arrived. If it has, this changes nothing.
		_ = l.input(ctx, workload, 0)
	}
}
