package linter

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/arbor-control/arbor/internal/decide/gangdraft"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show"
)

// findDeadlocks adds a warning for each StatefulSet whose pods wait for each
// other: it creates one pod at a time, and a PodGroup in any of the files needs
// more of them at once.
func findDeadlocks(files []FileReport) {
	type place struct {
		report *FileReport
		doc    *manifest.Document
	}
	sets := map[identity.Identity]place{}
	d := &gangdraft.Drafter{
		Priority: func(string) (int32, bool) { return 0, true },
		Notef:    func(string, ...any) {},
	}
	for i := range files {
		for _, doc := range files[i].all {
			// Other rules report what is wrong with a document.
			if err := d.Add(doc.Object); err != nil && d.Pods > gangdraft.MaxDrafts {
				return
			}
			if ref := identity.RefOf(doc.Object); ref.Kind == "StatefulSet" {
				sets[ref.Identity()] = place{&files[i], doc}
			}
		}
	}
	for _, one := range d.Drafts {
		found := one.Alone()
		if found == nil {
			continue
		}
		at := sets[found.Set.Identity()]
		at.report.findings = append(at.report.findings, show.Located{File: at.report.name, Line: at.doc.Line(policyField), Finding: show.Finding{
			Severity: show.SeverityWarning, Object: found.Set, Reason: gangdraft.ReasonOrderedReady, Field: policyField,
			Message: found.Message, Fix: "write " + string(appsv1.ParallelPodManagement),
		}})
	}
}

const policyField = "spec.podManagementPolicy"
