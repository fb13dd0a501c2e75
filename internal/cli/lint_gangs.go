package cli

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
)

// findDeadlocks adds a warning for each StatefulSet whose pods wait for each
// other: it creates one pod at a time, and a PodGroup in any of the files needs
// more of them at once.
func findDeadlocks(files []fileReport) {
	type place struct {
		report *fileReport
		doc    *manifest.Document
	}
	sets := map[identity.Identity]place{}
	d := &drafter{
		priority: func(string) (int32, bool) { return 0, true },
		notef:    func(string, ...any) {},
	}
	for i := range files {
		for _, doc := range files[i].all {
			// Other rules report what is wrong with a document.
			if err := d.add(doc.Object); err != nil && d.pods > maxDrafts {
				return
			}
			if ref := refOf(doc.Object); ref.Kind == "StatefulSet" {
				sets[ref.identity()] = place{&files[i], doc}
			}
		}
	}
	for _, one := range d.drafts {
		found := one.alone()
		if found == nil {
			continue
		}
		at := sets[found.set.identity()]
		at.report.findings = append(at.report.findings, Located{File: at.report.name, Line: at.doc.Line(policyField), Finding: Finding{
			Severity: SeverityWarning, Object: found.set, Reason: reasonOrderedReady, Field: policyField,
			Message: found.message, Fix: "write " + string(appsv1.ParallelPodManagement),
		}})
	}
}

const policyField = "spec.podManagementPolicy"

// alone returns the deadlock of a group that has the pods of the manifests and
// no others.
func (one *draft) alone() *deadlock {
	if one.group == nil {
		return nil
	}
	g, refusal := scheduling.Read(one.group, one.members(nil), gang.Rules{})
	if refusal != nil {
		return nil
	}

	return one.deadlocked(g)
}
