package clusterdump

import (
	"maps"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

// dumped is what a dump has of each kind, beside its metadata: a list of what may
// be in it and not of what may not, so that nobody's secret is there because
// nobody thought of it. Each line is a path, or several with the same beginning;
// all that is below a path is kept, and lists are gone through.
var dumped = map[string][]string{
	"Namespace": {},
	"Node":      {"spec.taints", "spec.unschedulable", "status.capacity", "status.allocatable", "status.images", "status.declaredFeatures"},
	"Pod": append([]string{
		"spec.affinity", "spec.hostNetwork", "spec.nodeName", "spec.nodeSelector", "spec.overhead", "spec.preemptionPolicy", "spec.priority", "spec.priorityClassName",
		"spec.resourceClaims", "spec.resources", "spec.schedulerName", "spec.schedulingGates", "spec.terminationGracePeriodSeconds", "spec.tolerations",
		"spec.topologySpreadConstraints", "spec.volumes",
		"status.phase", "status.nominatedNodeName", "status.startTime", "status.resourceClaimStatuses", "status.extendedResourceClaimStatus", "status.resize",
		"status.conditions.type", "status.conditions.status", "status.conditions.reason",
		"status.containerStatuses.name", "status.containerStatuses.resources", "status.containerStatuses.allocatedResources",
		"status.initContainerStatuses.name", "status.initContainerStatuses.resources", "status.initContainerStatuses.allocatedResources",
		"status.resources", "status.allocatedResources",
	}, containerPaths("spec.containers", "spec.initContainers")...),
	"PersistentVolume": {
		"spec.accessModes", "spec.capacity", "spec.claimRef.namespace", "spec.claimRef.name", "spec.claimRef.uid", "spec.nodeAffinity", "spec.storageClassName",
		"spec.volumeMode", "spec.csi.driver", "spec.csi.volumeHandle", "spec.csi.readOnly", "spec.awsElasticBlockStore", "spec.azureDisk.diskName",
		"spec.azureDisk.diskURI", "spec.gcePersistentDisk", "spec.local", "status.phase",
	},
	"PersistentVolumeClaim": {
		"spec.accessModes", "spec.resources", "spec.selector", "spec.storageClassName", "spec.volumeMode", "spec.volumeName", "spec.volumeAttributesClassName",
		"status.phase", "status.capacity", "status.accessModes",
	},
	"Service":               selectors,
	"ReplicationController": selectors,
	"ReplicaSet":            selectors,
	"StatefulSet":           selectors,
	"PodDisruptionBudget":   {"spec", "status.disruptionsAllowed", "status.currentHealthy", "status.desiredHealthy", "status.expectedPods", "status.disruptedPods"},
	"PriorityClass":         {"value", "globalDefault", "preemptionPolicy"},
	"PodGroup":              {"spec", "status.conditions", "status.placed", "status.subGroups"},
	"StorageClass":          {"provisioner", "volumeBindingMode", "allowedTopologies", "reclaimPolicy", "allowVolumeExpansion"},
	"CSINode":               {"spec"},
	"CSIDriver":             {"spec.storageCapacity", "spec.attachRequired", "spec.volumeLifecycleModes"},
	"CSIStorageCapacity":    {"capacity", "maximumVolumeSize", "nodeTopology", "storageClassName"},
	"VolumeAttachment":      {"spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName", "status.attached"},
	"ResourceClaim": {
		"spec.devices.constraints", "spec.devices.requests", "status.allocation.allocationTimestamp", "status.allocation.devices.results",
		"status.allocation.nodeSelector", "status.reservedFor",
	},
	"ResourceSlice": {"spec"},
	"DeviceClass":   {"spec.selectors", "spec.extendedResourceName"},
}

// selectors are what is kept of those who own pods: by them, pods are spread.
var selectors = []string{"spec.selector"}

// dumpedMetadata is what every object has.
var dumpedMetadata = []string{
	"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.generation",
	"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.ownerReferences", "metadata.annotations",
}

// dumpedAnnotations are those that scheduling reads, whole or by their beginning.
var dumpedAnnotations = []string{
	scheduling.GroupAnnotation, "pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "storage.alpha.kubernetes.io/migrated-plugins",
	"storageclass.kubernetes.io/is-default-class", "resource.kubernetes.io/",
}

// dumpedVolumes are the sources of a pod's volumes that decide where it may be,
// and what is kept of them beside whether they are read only. Any other is
// written as an empty one.
var dumpedVolumes = map[string][]string{
	"persistentVolumeClaim": {"claimName"},
	"ephemeral": {
		"volumeClaimTemplate.spec.accessModes", "volumeClaimTemplate.spec.resources", "volumeClaimTemplate.spec.selector",
		"volumeClaimTemplate.spec.storageClassName", "volumeClaimTemplate.spec.volumeMode",
	},
	"csi":                  {"driver"},
	"gcePersistentDisk":    {"pdName"},
	"awsElasticBlockStore": {"volumeID"},
	"iscsi":                {"iqn", "lun", "targetPortal"},
	"rbd":                  {"monitors", "image", "pool"},
}

func containerPaths(lists ...string) []string {
	var all []string
	for _, list := range lists {
		for _, field := range []string{"name", "image", "resources", "restartPolicy", "ports.containerPort", "ports.hostPort", "ports.hostIP", "ports.protocol"} {
			all = append(all, list+"."+field)
		}
	}

	return all
}

// A mask has the fields to keep, and of each what to keep below it; nil keeps
// everything.
type mask map[string]mask

func maskOf(paths ...string) mask {
	m := mask{}
	for _, path := range paths {
		at := m
		parts := strings.Split(path, ".")
		for i, part := range parts {
			if i == len(parts)-1 {
				at[part] = nil
			} else if at[part] == nil {
				at[part] = mask{}
			}
			at = at[part]
		}
	}

	return m
}

// keep returns what the mask leaves of a value, in memory of its own. Lists are
// gone through.
func (m mask) keep(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for field, below := range m {
			inner, ok := v[field]
			if !ok {
				continue
			}
			if below != nil {
				inner = below.keep(inner)
			}
			out[field] = inner
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.keep(v[i])
		}

		return out
	default:
		return value
	}
}

var masks = func() map[string]mask {
	all := map[string]mask{}
	for kind, paths := range dumped {
		all[kind] = maskOf(slices.Concat(paths, dumpedMetadata)...)
	}

	return all
}()

// Trim leaves of an object what scheduling looks at. Of a kind that is not
// known here that is its metadata.
func Trim(obj map[string]any) map[string]any {
	kind, _ := obj["kind"].(string)
	m, ok := masks[kind]
	if !ok {
		m = maskOf(dumpedMetadata...)
	}
	out, _ := m.keep(obj).(map[string]any)
	metadata, _ := out["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations = maps.Clone(annotations)
		maps.DeleteFunc(annotations, func(key string, _ any) bool { return !dumpedAnnotation(key) })
		metadata["annotations"] = annotations
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	if spec, ok := out["spec"].(map[string]any); ok && kind == "Pod" {
		if volumes, ok := spec["volumes"].([]any); ok {
			spec["volumes"] = trimVolumes(volumes)
		}
	}

	return out
}

func dumpedAnnotation(key string) bool {
	for _, k := range dumpedAnnotations {
		if key == k || strings.HasSuffix(k, "/") && strings.HasPrefix(key, k) {
			return true
		}
	}

	return false
}

func trimVolumes(volumes []any) []any {
	out := make([]any, 0, len(volumes))
	for _, volume := range volumes {
		v, _ := volume.(map[string]any)
		one := map[string]any{"name": v["name"]}
		for source, paths := range dumpedVolumes {
			if content, ok := v[source]; ok {
				one[source] = maskOf(append([]string{"readOnly"}, paths...)...).keep(content)
			}
		}
		if len(one) == 1 {
			one["emptyDir"] = map[string]any{}
		}
		out = append(out, one)
	}

	return out
}
