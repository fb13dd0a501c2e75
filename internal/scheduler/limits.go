package scheduler

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// limitClient raises how many requests a second the scheduler may send, and how many
// at once. With kube-scheduler's own 50 and 100, the bindings of a gang of 512 take
// 8 seconds, in which a part of it runs alone. Flags count first. With --config,
// clientConnection of the file decides.
func limitClient(kube *options.Options) {
	flags := kube.Flags.FlagSet("deprecated")
	for name, value := range map[string]string{"kube-api-qps": "500", "kube-api-burst": "1000"} {
		utilruntime.Must(flags.Set(name, value)) // fails only if kube-scheduler has no such flag
		flags.Lookup(name).DefValue = value
	}
}
