package podgroups

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// RecordReason is why room is reserved.
const RecordReason = "Preemption"

// A ReservationRecord is the annotation that tells another process of a reservation. The places
// are in the status of the pods.
type ReservationRecord struct {
	Generation int64  `json:"generation"`
	Reason     string `json:"reason"`
	// Deadline is when the reservation ends at the latest, however often the scheduler is
	// restarted.
	Deadline time.Time   `json:"deadline"`
	Victims  []types.UID `json:"victims"`
}

// RecordOf reads the record of a PodGroup. It is nil if there is none, and an error
// if it does not parse.
func RecordOf(pg *v2alpha2.PodGroup) (*ReservationRecord, error) {
	text, ok := pg.Annotations[v2alpha2.ReservationAnnotation]
	if !ok {
		return nil, nil //nolint:nilnil // most groups have none
	}
	r := &ReservationRecord{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("annotation %s of PodGroup %s/%s: %w", v2alpha2.ReservationAnnotation, pg.Namespace, pg.Name, err)
	}

	return r, nil
}

// Annotate sets an annotation of a PodGroup, or removes it if value is nil.
func (g *Index) Annotate(ctx context.Context, pg *v2alpha2.PodGroup, name string, value *string) error {
	return g.AnnotateVersion(ctx, pg, "", name, value)
}

// AnnotateVersion does so only if the PodGroup has the resource version, if one is
// given. Otherwise it returns a conflict.
func (g *Index) AnnotateVersion(ctx context.Context, pg *v2alpha2.PodGroup, version, name string, value *string) error {
	metadata := map[string]any{"uid": pg.UID, "annotations": map[string]*string{name: value}}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	err = g.REST.Patch(types.MergePatchType).Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).
		Param("fieldManager", settings.Name).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write annotation %s of PodGroup %s/%s: %w", name, pg.Namespace, pg.Name, err)
	}

	return nil
}
