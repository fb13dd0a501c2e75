// Arbor's scheduler alone, for an image: kube-scheduler that knows gangs.
package main

import (
	"fmt"
	"os"

	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client and queue metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info

	"github.com/arbor-control/arbor/internal/memlimit"
	"github.com/arbor-control/arbor/internal/scheduler"
)

func main() {
	if err := memlimit.Apply(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(scheduler.Main(os.Args[1:]))
}
