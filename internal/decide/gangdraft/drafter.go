package gangdraft

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/identity"
)

// MaxDrafts is how many pods one file may ask about. More are a typing error.
const MaxDrafts = 20000

// A Drafter makes pods of manifests, as controllers and the API server would.
type Drafter struct {
	// Namespace is that of objects that name none.
	Namespace string
	Now       metav1.Time
	Priority  func(class string) (int32, bool)
	Notef     func(format string, args ...any)

	Drafts []*Draft
	Pods   int
	// classes are the PriorityClasses of the manifests. missing are those that
	// nobody has, which is told once.
	classes map[string]int32
	missing map[string]bool
	// strangers are objects whose pods name no group.
	strangers []string
}

func (d *Drafter) draft(key types.NamespacedName) *Draft {
	for _, one := range d.Drafts {
		if one.Key == key {
			return one
		}
	}
	one := &Draft{Key: key}
	d.Drafts = append(d.Drafts, one)

	return one
}

// AddAll takes the objects of the manifests, in any order.
func (d *Drafter) AddAll(objects []map[string]any) error {
	d.classes, d.missing = map[string]int32{}, map[string]bool{}
	for _, obj := range objects {
		if ref := identity.RefOf(obj); ref.Kind == "PriorityClass" && ref.APIVersion == "scheduling.k8s.io/v1" {
			value, _, _ := unstructured.NestedInt64(obj, "value")
			d.classes[ref.Name] = int32(value) //nolint:gosec // what does not fit is refused by the API server
		}
	}
	for _, obj := range objects {
		if err := d.Add(obj); err != nil {
			return err
		}
	}

	return nil
}

// Add takes an object. Those that have nothing to do with pods are passed over.
func (d *Drafter) Add(obj map[string]any) error {
	ref := identity.RefOf(obj)
	ref.Namespace = cmp.Or(ref.Namespace, d.Namespace)
	spec, _ := obj["spec"].(map[string]any)
	switch {
	case podgroup.IsPodGroup(ref):
		return d.addGroup(ref, obj)
	case ref.Kind == "Pod" && ref.APIVersion == "v1":
		return d.addPod(ref, obj)
	case ref.Kind == "CronJob":
		inner, _, _ := unstructured.NestedMap(obj, "spec", "jobTemplate", "spec")

		return d.addWorkload(ref, inner, "spec.jobTemplate.spec.")
	default:
		return d.addWorkload(ref, spec, "spec.")
	}
}

func (d *Drafter) addGroup(ref identity.Ref, obj map[string]any) error {
	pg, bad := podgroup.Decode(obj)
	if len(bad) > 0 {
		return fmt.Errorf("%s: %s: %s", ref, bad[0].Field, bad[0].Message)
	}
	if pg.Name == "" {
		return fmt.Errorf("%s in namespace %s has no name: set metadata.name", ref.Kind, ref.Namespace)
	}
	pg.Namespace = ref.Namespace
	one := d.draft(types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name})
	if one.Group != nil {
		return fmt.Errorf("%s is there twice: remove or rename one of the two", ref)
	}
	// What somebody saved with its status is asked about anew.
	pg.Status, pg.DeletionTimestamp = v2alpha2.PodGroupStatus{}, nil
	one.Group = pg

	return nil
}

func (d *Drafter) addPod(ref identity.Ref, obj map[string]any) error {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, pod); err != nil {
		return fmt.Errorf("%s cannot be read: %w", ref, err)
	}
	name := pod.Name
	if name == "" && pod.GenerateName != "" {
		name = fmt.Sprintf("%s%d", pod.GenerateName, d.Pods)
	}
	if name == "" {
		return fmt.Errorf("a Pod in namespace %s has no name: set metadata.name", ref.Namespace)
	}
	ref.Name = name

	return d.enlist(crew{Owner: ref}, 1, func(int) *corev1.Pod {
		return d.admit(ref, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec})
	}, pod.Annotations)
}

// addWorkload takes anything with a template of pods.
func (d *Drafter) addWorkload(ref identity.Ref, spec map[string]any, path string) error {
	content, ok := spec["template"].(map[string]any)
	if !ok {
		return nil
	}
	if list, found, err := unstructured.NestedSlice(content, "spec", "containers"); err != nil || !found || len(list) == 0 {
		return nil //nolint:nilerr // a template of something else than pods
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template); err != nil {
		return fmt.Errorf("%s: %stemplate cannot be read: %w", ref, path, err)
	}
	if template.Annotations[scheduling.GroupAnnotation] == "" {
		d.strangers = append(d.strangers, ref.String())

		return nil
	}
	if ref.Name == "" {
		return fmt.Errorf("a %s in namespace %s has no name: set metadata.name", ref.Kind, ref.Namespace)
	}
	if ref.Kind == "DaemonSet" {
		return fmt.Errorf("%s has as many pods as there are nodes, and they are placed one by one: remove the annotation %s from its template", ref, scheduling.GroupAnnotation)
	}
	n, err := podCount(ref, spec, path)
	if err != nil {
		return err
	}

	return d.enlist(crew{Owner: ref, ordered: isOrdered(ref, spec)}, n, func(i int) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		pod.Name = fmt.Sprintf("%s-%d", ref.Name, i)
		pod.Labels = controllerLabels(ref, pod.Name, i, pod.Labels)

		return d.admit(ref, pod)
	}, template.Annotations)
}

// LeftOut says whose pods do not count, and what they would need.
func (d *Drafter) LeftOut() {
	if len(d.strangers) > 0 {
		d.Notef("pods that name no PodGroup are left out, those of %s; to count, they need the annotation %s", some(d.strangers), scheduling.GroupAnnotation)
	}
}

// some are the first few of many.
func some(texts []string) string {
	const few = 3
	if len(texts) <= few {
		return strings.Join(texts, ", ")
	}

	return fmt.Sprintf("%s and %d more", strings.Join(texts[:few], ", "), len(texts)-few)
}

// podCount is how many pods a workload has at a time.
func podCount(ref identity.Ref, spec map[string]any, path string) (int, error) {
	number := func(field string) (int64, bool, error) {
		value, ok := spec[field]
		if !ok || value == nil {
			return 0, false, nil
		}
		n, isNumber := value.(int64)
		if !isNumber || n < 0 || n > math.MaxInt32 {
			return 0, false, fmt.Errorf("%s: %s%s: %q is no number of pods: write a whole number from 0 on", ref, path, field, fmt.Sprint(value))
		}

		return n, true, nil
	}
	n, found := int64(1), false
	for _, field := range []string{"replicas", "parallelism"} {
		value, ok, err := number(field)
		if err != nil {
			return 0, err
		}
		if ok && !found {
			n, found = value, true
		}
	}
	most, ok, err := number("completions")
	if ok {
		n = min(n, most)
	}

	return int(n), err
}

// enlist adds the pods of one object to their group.
func (d *Drafter) enlist(c crew, n int, pod func(int) *corev1.Pod, annotations map[string]string) error {
	ref := c.Owner
	group := annotations[scheduling.GroupAnnotation]
	if group == "" {
		d.strangers = append(d.strangers, ref.String())

		return nil
	}
	if d.Pods += n; d.Pods > MaxDrafts {
		return fmt.Errorf("%s brings the pods of the files to %d, and no more than %d can be asked about at a time", ref, d.Pods, MaxDrafts)
	}
	for i := range n {
		c.pods = append(c.pods, pod(i))
	}
	one := d.draft(types.NamespacedName{Namespace: ref.Namespace, Name: group})
	one.Crews = append(one.Crews, c)

	return nil
}

// controllerLabels are those of the template and what the controller adds.
func controllerLabels(ref identity.Ref, pod string, i int, labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	switch ref.Kind {
	case "Job":
		labels["job-name"], labels["batch.kubernetes.io/job-name"] = ref.Name, ref.Name
	case "StatefulSet":
		labels["statefulset.kubernetes.io/pod-name"], labels["apps.kubernetes.io/pod-index"] = pod, strconv.Itoa(i)
	case "Deployment":
		labels["pod-template-hash"] = "new"
	}

	return labels
}

// admit gives a pod what the API server would. It has no place and no past.
func (d *Drafter) admit(ref identity.Ref, pod *corev1.Pod) *corev1.Pod {
	pod.Namespace = ref.Namespace
	pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	pod.CreationTimestamp = d.Now
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}

	spec := &pod.Spec
	spec.NodeName = ""
	spec.SchedulerName = cmp.Or(spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.Resources != nil {
		requests(spec.Resources)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			requests(&containers[i].Resources)
			hostPorts(spec.HostNetwork, containers[i].Ports)
		}
	}
	d.prioritize(ref, spec)
	tolerate(spec)

	return pod
}

// requests are what is limited, where nothing else is said.
func requests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// hostPorts are all ports of a pod that is in the network of its node.
func hostPorts(hostNetwork bool, ports []corev1.ContainerPort) {
	for i := range ports {
		ports[i].Protocol = cmp.Or(ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork && ports[i].HostPort == 0 {
			ports[i].HostPort = ports[i].ContainerPort
		}
	}
}

func (d *Drafter) prioritize(ref identity.Ref, spec *corev1.PodSpec) {
	priority, known := d.classes[spec.PriorityClassName]
	if !known {
		priority, known = d.Priority(spec.PriorityClassName)
	}
	if !known && !d.missing[spec.PriorityClassName] {
		d.missing[spec.PriorityClassName] = true
		d.Notef("%s: there is no PriorityClass %q, so its pods have the priority 0 here; the API server would refuse them", ref, spec.PriorityClassName)
	}
	spec.Priority = &priority
}

// tolerate adds what every pod puts up with for a while.
func tolerate(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
		tolerated := false
		for _, t := range spec.Tolerations {
			tolerated = tolerated || (t.Key == key || t.Key == "") && (t.Effect == taint.Effect || t.Effect == "")
		}
		if !tolerated {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: taint.Effect, TolerationSeconds: new(int64(300)),
			})
		}
	}
}
