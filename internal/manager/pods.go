package manager

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/internal/controller/synthesispod"
)

// PodOptions are how pods of synthesizers are scheduled and labeled. The flags and their
// values are those of Eno.
type PodOptions struct {
	// Tolerations are taints as key, key=value or key=value:effect.
	Tolerations []string
	// NodeAffinity is a label that nodes must have, as key or key=value.
	NodeAffinity string
	// Labels and Annotations of the pods.
	Labels, Annotations map[string]string
	// Requests and Limits are for the container that runs the program, unless its Synthesizer sets
	// them; HelperRequests and HelperLimits are for the other containers. The form is
	// name=quantity, separated by commas.
	Requests, Limits, HelperRequests, HelperLimits string
}

// defaultPodOptions give the helper containers what they need, so that a quota on CPU or
// memory can be met. The author of a Synthesizer sets what its program needs.
func defaultPodOptions() PodOptions {
	return PodOptions{HelperRequests: "cpu=10m,memory=32Mi", HelperLimits: "cpu=1,memory=512Mi"}
}

// AddFlags binds the options to flags, with the current values as defaults.
func (o *PodOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Tolerations, "taint-toleration", o.Tolerations, "Taints that pods of synthesizers tolerate, separated by commas: KEY for any value, or KEY=VALUE. The effect is NoSchedule; KEY=VALUE:EFFECT is another one.")
	fs.StringVar(&o.NodeAffinity, "node-affinity", o.NodeAffinity, "Label of the nodes that pods of synthesizers run on: KEY for any value, or KEY=VALUE. Empty: any node.")
	fs.StringToStringVar(&o.Labels, "synthesizer-pod-labels", o.Labels, "Labels of pods of synthesizers: KEY=VALUE, separated by commas. Those of a Synthesizer take precedence.")
	fs.StringToStringVar(&o.Annotations, "synthesizer-pod-annotations", o.Annotations, "Annotations of pods of synthesizers: KEY=VALUE, separated by commas. Those of a Synthesizer take precedence.")
	fs.StringVar(&o.Requests, "synthesizer-pod-requests", o.Requests, "Resources that the container of a Synthesizer's image requests: NAME=QUANTITY, separated by commas. Each is for Synthesizers whose podOverrides do not name that resource. Empty: none.")
	fs.StringVar(&o.Limits, "synthesizer-pod-limits", o.Limits, "Limits of the container of a Synthesizer's image, in the same form. Empty: none.")
	fs.StringVar(&o.HelperRequests, "synthesizer-pod-helper-requests", o.HelperRequests, "Resources that the other containers of these pods request, synth-installer and publisher, in the same form. Empty: none.")
	fs.StringVar(&o.HelperLimits, "synthesizer-pod-helper-limits", o.HelperLimits, "Limits of the containers synth-installer and publisher, in the same form. Empty: none.")
}

// resources are the flags with lists of resources.
func (o *PodOptions) resources() map[string]*string {
	return map[string]*string{
		"synthesizer-pod-requests": &o.Requests, "synthesizer-pod-limits": &o.Limits,
		"synthesizer-pod-helper-requests": &o.HelperRequests, "synthesizer-pod-helper-limits": &o.HelperLimits,
	}
}

// Args are the flags that make another manager have these options.
func (o *PodOptions) Args() []string { return flagArgs(o.AddFlags) }

// Validate returns the first invalid option.
func (o *PodOptions) Validate() error {
	lists := o.resources()
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		if _, err := parseResources(*lists[name]); err != nil {
			return fmt.Errorf("--%s %q: %w", name, *lists[name], err)
		}
	}
	for _, pair := range [][2]string{{"synthesizer-pod-requests", "synthesizer-pod-limits"}, {"synthesizer-pod-helper-requests", "synthesizer-pod-helper-limits"}} {
		if err := checkRequests(*lists[pair[0]], pair[1], *lists[pair[1]]); err != nil {
			return fmt.Errorf("--%s %q: %w", pair[0], *lists[pair[0]], err)
		}
	}

	return o.validateObjects()
}

// checkRequests returns the first request that is more than the limit of its resource: the
// API server would reject every pod. Both lists are valid.
func checkRequests(requests, flag, limits string) error {
	requested, err := parseResources(requests)
	if err != nil {
		return err
	}
	limited, err := parseResources(limits)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		request := requested[name]
		if limit, ok := limited[name]; ok && request.Cmp(limit) > 0 {
			return fmt.Errorf("%s=%s is more than %s=%s of --%s: lower the request or raise the limit", name, request.String(), name, limit.String(), flag)
		}
	}

	return nil
}

// validateObjects returns the first invalid option of those for tolerations, affinity, labels
// and annotations.
func (o *PodOptions) validateObjects() error {
	for _, text := range o.Tolerations {
		if _, err := parseToleration(text); err != nil {
			return fmt.Errorf("--taint-toleration %q: %w", text, err)
		}
	}
	if key, value, _ := strings.Cut(o.NodeAffinity, "="); o.NodeAffinity != "" {
		if err := checkLabel(key, value); err != nil {
			return fmt.Errorf("--node-affinity %q: %w", o.NodeAffinity, err)
		}
	}
	for key, value := range o.Labels {
		if err := checkLabel(key, value); err != nil {
			return fmt.Errorf("--synthesizer-pod-labels %s=%s: %w", key, value, err)
		}
	}
	for key, value := range o.Annotations {
		if err := checkLabel(strings.ToLower(key), ""); err != nil {
			return fmt.Errorf("--synthesizer-pod-annotations %s=%s: %w", key, value, err)
		}
	}

	return nil
}

// apply adds valid options to those of the pods.
func (o *PodOptions) apply(to *synthesispod.Options) {
	for _, text := range o.Tolerations {
		if t, err := parseToleration(text); err == nil {
			to.Tolerations = append(to.Tolerations, t)
		}
	}
	if key, value, _ := strings.Cut(o.NodeAffinity, "="); key != "" {
		to.NodeAffinity = &corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
		if value != "" {
			to.NodeAffinity.Operator, to.NodeAffinity.Values = corev1.NodeSelectorOpIn, []string{value}
		}
	}
	to.Labels, to.Annotations = o.Labels, o.Annotations
	for _, r := range []struct {
		text string
		list *corev1.ResourceList
	}{
		{o.Requests, &to.Resources.Requests},
		{o.Limits, &to.Resources.Limits},
		{o.HelperRequests, &to.HelperResources.Requests},
		{o.HelperLimits, &to.HelperResources.Limits},
	} {
		if list, err := parseResources(r.text); err == nil {
			*r.list = list
		}
	}
}

// parseResources reads NAME=QUANTITY, separated by commas; nil if there is none.
func parseResources(text string) (corev1.ResourceList, error) {
	var list corev1.ResourceList
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || len(validation.IsQualifiedName(name)) > 0 {
			return nil, fmt.Errorf("%q is not a resource: write NAME=QUANTITY, such as memory=64Mi", pair)
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("%q is not a quantity: write one such as 100m or 64Mi", value)
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[corev1.ResourceName(name)] = quantity
	}

	return list, nil
}

// parseToleration reads KEY, KEY=VALUE or either with :EFFECT.
func parseToleration(text string) (corev1.Toleration, error) {
	taint, effect, other := strings.Cut(text, ":")
	if !other {
		effect = string(corev1.TaintEffectNoSchedule)
	}
	key, value, _ := strings.Cut(taint, "=")
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if value != "" {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	if !slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
		return t, fmt.Errorf("%q is not an effect: write NoSchedule, PreferNoSchedule or NoExecute", effect)
	}

	return t, checkLabel(key, value)
}

func checkLabel(key, value string) error {
	if all := validation.IsQualifiedName(key); len(all) > 0 {
		return fmt.Errorf("%q is not a key: %s", key, all[0])
	}
	if all := validation.IsValidLabelValue(value); len(all) > 0 {
		return fmt.Errorf("%q is not a value: %s", value, all[0])
	}

	return nil
}
