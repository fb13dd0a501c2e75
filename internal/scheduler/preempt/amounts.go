package preempt

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/features"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/arbor-control/arbor/engine/victims"
)

// mebibyte is the unit in which bytes are shown.
const mebibyte = 1 << 20

// amounts returns the resources that the members ask for, if NodeResourcesFit filters by
// them. The dry run has its candidates, and terminating pods are removed.
func (d *dryRun) amounts(args *config.NodeResourcesFitArgs) *victims.Amounts {
	filters := d.fw.ListPlugins().Filter.Enabled
	if !slices.ContainsFunc(filters, func(p config.Plugin) bool { return p.Name == names.NodeResourcesFit }) {
		return nil
	}
	asked, some := make([]*framework.Resource, len(d.members)), &framework.Resource{}
	for i, m := range d.members {
		if m.filter == nil { // it does not wait
			continue
		}
		requests := requestsOf(m.info.GetPod())
		asked[i] = &framework.Resource{}
		asked[i].SetMaxResource(requests)
		some.SetMaxResource(requests)
	}
	kinds := d.countable(some, args)
	a := &victims.Amounts{Asks: make([][]int64, len(d.members)), Free: make([][]int64, len(d.nodes)), Frees: make([][]int64, len(d.pods))}
	for _, kind := range kinds {
		a.Resources = append(a.Resources, kind.Resource)
	}
	for i, r := range asked {
		if r != nil {
			a.Asks[i] = amountsOf(kinds, r)
		}
	}
	for i := range d.nodes {
		if d.mayUse(i) {
			a.Free[i] = amountsOf(kinds, d.node(i).GetAllocatable())
			for k, used := range amountsOf(kinds, d.node(i).GetRequested()) {
				a.Free[i][k] -= used
			}
		}
	}
	for i, info := range d.pods {
		a.Frees[i] = amountsOf(kinds, info.CalculateResource().Resource)
	}

	return a
}

// requestsOf returns what NodeResourcesFit compares for a pod that waits.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		SkipPodLevelResources: !utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
	})
}

// mayUse reports whether PreFilter and the extenders leave a node to any member.
func (d *dryRun) mayUse(node int) bool {
	name := d.nodes[node].Node().Name

	return slices.ContainsFunc(d.filters, func(f *filterState) bool { return f.mayUse(name) })
}

// A countable resource is one that a node has an amount of.
type countable struct {
	victims.Resource

	of func(fwk.Resource) int64
}

// countable returns the resources of which some are asked for, without those that
// NodeResourcesFit ignores, or that devices of a DeviceClass may provide.
func (d *dryRun) countable(asked *framework.Resource, args *config.NodeResourcesFitArgs) []countable {
	var kinds []countable
	for _, name := range slices.Sorted(maps.Keys(asked.ScalarResources)) {
		if asked.ScalarResources[name] > 0 && !ignores(args, name) && !d.isDevice(name) {
			kinds = append(kinds, countable{
				victims.Resource{Name: string(name), Unit: 1}, func(r fwk.Resource) int64 { return r.GetScalarResources()[name] },
			})
		}
	}
	for _, kind := range []countable{
		{victims.Resource{Name: "thousandths of a CPU", Unit: 1}, fwk.Resource.GetMilliCPU},
		{victims.Resource{Name: "MiB of memory", Unit: mebibyte}, fwk.Resource.GetMemory},
		{victims.Resource{Name: "MiB of ephemeral-storage", Unit: mebibyte}, fwk.Resource.GetEphemeralStorage},
	} {
		if kind.of(asked) > 0 {
			kinds = append(kinds, kind)
		}
	}

	return kinds
}

// ignores reports whether NodeResourcesFit does not look at an extended resource.
func ignores(args *config.NodeResourcesFitArgs, name corev1.ResourceName) bool {
	if args == nil || !v1helper.IsExtendedResourceName(name) {
		return false
	}
	group, _, _ := strings.Cut(string(name), "/")

	return slices.Contains(args.IgnoredResources, string(name)) || slices.Contains(args.IgnoredResourceGroups, group)
}

// isDevice reports whether a DeviceClass provides an extended resource.
func (d *dryRun) isDevice(name corev1.ResourceName) bool {
	manager := d.fw.SharedDRAManager()

	return manager != nil && manager.DeviceClassResolver().GetDeviceClass(name) != nil
}

func amountsOf(kinds []countable, r fwk.Resource) []int64 {
	all := make([]int64, len(kinds))
	for i, kind := range kinds {
		all[i] = kind.of(r)
	}

	return all
}
