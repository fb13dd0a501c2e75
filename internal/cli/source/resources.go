package source

import (
	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// Kinds of the delivery API as a cluster knows them.
var (
	CompositionResource = enov1.GroupVersion.WithResource("compositions")
	SliceResource       = enov1.GroupVersion.WithResource("resourceslices")
	SymphonyResource    = enov1.GroupVersion.WithResource("symphonies")
)

// PodGroupResource is the resource of PodGroups.
var PodGroupResource = v2alpha2.GroupVersion.WithResource("podgroups")
