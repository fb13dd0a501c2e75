package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/arbor-control/arbor/internal/controller/synthesispod"
)

func TestPodOptions(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   synthesispod.Options
		err    string
	}{
		"None": {reason: "Pods run anywhere."},
		"Key": {reason: "A key alone matches every value.", args: []string{"--taint-toleration=pool", "--node-affinity=pool"}, want: synthesispod.Options{
			Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			NodeAffinity: &corev1.NodeSelectorRequirement{Key: "pool", Operator: corev1.NodeSelectorOpExists},
		}},
		"Value": {reason: "A value has to match.", args: []string{"--taint-toleration=example.com/pool=synth", "--node-affinity=example.com/pool=synth"}, want: synthesispod.Options{
			Tolerations:  []corev1.Toleration{{Key: "example.com/pool", Operator: corev1.TolerationOpEqual, Value: "synth", Effect: corev1.TaintEffectNoSchedule}},
			NodeAffinity: &corev1.NodeSelectorRequirement{Key: "example.com/pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"synth"}},
		}},
		"Several": {reason: "There may be more taints, with other effects.", args: []string{"--taint-toleration=a,b=c:NoExecute"}, want: synthesispod.Options{
			Tolerations: []corev1.Toleration{
				{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, {Key: "b", Operator: corev1.TolerationOpEqual, Value: "c", Effect: corev1.TaintEffectNoExecute},
			},
		}},
		"Labels": {reason: "Values may have commas and equals signs.", args: []string{"--synthesizer-pod-labels=a=b,c=d", `--synthesizer-pod-annotations="list=x=1,y=2"`, "--synthesizer-pod-annotations=one=two"}, want: synthesispod.Options{
			Labels: map[string]string{"a": "b", "c": "d"}, Annotations: map[string]string{"list": "x=1,y=2", "one": "two"},
		}},
		"Resources": {reason: "Quantities have a name each.", args: []string{"--synthesizer-pod-limits=memory=1Gi", "--synthesizer-pod-helper-requests=cpu=10m,memory=32Mi"}, want: synthesispod.Options{
			Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
			HelperResources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("10m"), "memory": resource.MustParse("32Mi")}},
		}},
		"BadResource": {reason: "A resource has a quantity.", args: []string{"--synthesizer-pod-requests=memory"}, err: `--synthesizer-pod-requests "memory": "memory" is not a resource: write NAME=QUANTITY, such as memory=64Mi`},
		"BadQuantity": {reason: "Which is one.", args: []string{"--synthesizer-pod-helper-limits=memory=much"}, err: `--synthesizer-pod-helper-limits "memory=much": "much" is not a quantity: write one such as 100m or 64Mi`},
		"Negative":    {reason: "And not less than none.", args: []string{"--synthesizer-pod-limits=cpu=-1"}, err: `"-1" is not a quantity`},
		"AtLimit": {reason: "A request may be all of the limit.", args: []string{"--synthesizer-pod-requests=memory=1Gi", "--synthesizer-pod-limits=memory=1024Mi"}, want: synthesispod.Options{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("1Gi")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1024Mi")}},
		}},
		"AboveLimit":    {reason: "The API server rejects such a pod, for every synthesis.", args: []string{"--synthesizer-pod-requests=cpu=1,memory=2Gi", "--synthesizer-pod-limits=memory=1Gi"}, err: `--synthesizer-pod-requests "cpu=1,memory=2Gi": memory=2Gi is more than memory=1Gi of --synthesizer-pod-limits: lower the request or raise the limit`},
		"AboveHelper":   {reason: "The other containers are no exception.", args: []string{"--synthesizer-pod-helper-requests=cpu=2", "--synthesizer-pod-helper-limits=cpu=1500m"}, err: `--synthesizer-pod-helper-requests "cpu=2": cpu=2 is more than cpu=1500m of --synthesizer-pod-helper-limits: lower the request or raise the limit`},
		"BadTaint":      {reason: "A key is a qualified name.", args: []string{"--taint-toleration=a b"}, err: `--taint-toleration "a b": "a b" is not a key`},
		"BadEffect":     {reason: "Effects have names.", args: []string{"--taint-toleration=a:Never"}, err: `"Never" is not an effect`},
		"BadAffinity":   {reason: "So do labels of nodes.", args: []string{"--node-affinity=a=b c"}, err: `--node-affinity "a=b c": "b c" is not a value`},
		"BadLabel":      {reason: "A pod could never be created.", args: []string{"--synthesizer-pod-labels=a=b/c"}, err: `--synthesizer-pod-labels a=b/c`},
		"BadAnnotation": {reason: "Here neither.", args: []string{"--synthesizer-pod-annotations=a/b/c=d"}, err: `--synthesizer-pod-annotations a/b/c=d`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := parsePods(t, tc.args)
			err := o.Validate()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nValidate(): %v, want %q", tc.reason, err, tc.err)
				}

				return
			}
			var got synthesispod.Options
			o.apply(&got)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s\n%v\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(o, parsePods(t, o.Args())); diff != "" {
				t.Errorf("%s\nArgs() make another manager: %s", tc.reason, diff)
			}
		})
	}
}

func parsePods(t *testing.T, args []string) PodOptions {
	t.Helper()
	var o PodOptions
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if len(o.Tolerations) == 0 {
		o.Tolerations = nil
	}

	return o
}
