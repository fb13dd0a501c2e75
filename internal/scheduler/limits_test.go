package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

func TestLimitClient(t *testing.T) {
	type limits struct {
		QPS   float32
		Burst int32
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   limits
	}{
		"Default": {reason: "512 bindings fit into one burst", want: limits{500, 1000}},
		"Flags":   {reason: "flags count first", args: []string{"--kube-api-qps=20", "--kube-api-burst=30"}, want: limits{20, 30}},
		"OneFlag": {reason: "each on its own", args: []string{"--kube-api-qps=20"}, want: limits{20, 1000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := options.NewOptions()
			limitClient(kube)
			if err := kube.Flags.FlagSet("deprecated").Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			defaults, err := latest.Default()
			if err != nil {
				t.Fatal(err)
			}
			kube.ComponentConfig = defaults
			kube.ApplyDeprecated()
			got := limits{defaults.ClientConnection.QPS, defaults.ClientConnection.Burst}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
