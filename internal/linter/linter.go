package linter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
	crdschema "github.com/arbor-control/arbor/internal/manifest/schema"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
)

// deciders are the rules beyond the schema. A kind that has a definition but
// no rules is checked against its schema only.
var deciders = map[schema.GroupKind]func(obj map[string]any) []show.Finding{
	podgroup.GroupKind:                           findings.LintPodGroup,
	findings.EstateKind(v1alpha1.SubnetPoolKind): findings.SubnetPool,
	findings.EstateKind(v1alpha1.SubnetKind):     findings.Subnet,
}

// A Linter checks documents. It may be used concurrently.
type Linter struct {
	kinds  map[schema.GroupKind]*crdschema.Validator
	folded map[schema.GroupKind]string
}

// New returns a Linter for all kinds of Arbor.
func New() *Linter {
	l := &Linter{
		kinds:  map[schema.GroupKind]*crdschema.Validator{},
		folded: map[schema.GroupKind]string{},
	}

	for _, crd := range crds.All() {
		gk := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		l.kinds[gk] = crdschema.New(crd)
		l.folded[fold(gk)] = gk.Kind
	}

	return l
}

func fold(gk schema.GroupKind) schema.GroupKind {
	gk.Kind = strings.ToLower(gk.Kind)

	return gk
}

// A FileReport is what was found in one file.
type FileReport struct {
	findings   []show.Located
	documents  int
	unreadable bool
	checked    []checked
	// all are the documents of every kind, and name is where they are.
	all  []*manifest.Document
	name string
}

// checked is an object and where it is written.
type checked struct {
	ref  identity.Ref
	kind schema.GroupKind // that it means, however it spells it
	file string
	line int
	// doc is kept of kinds that are compared with others.
	doc *manifest.Document
}

// File checks the documents of a file.
func (l *Linter) File(ctx context.Context, f manifest.File) FileReport {
	r := FileReport{documents: len(f.Documents), all: f.Documents, name: f.Name}

	for _, e := range f.Errors {
		r.findings = append(r.findings, findings.FileError(f.Name, e))
		r.unreadable = r.unreadable || e.Unreadable
	}

	for _, d := range f.Documents {
		kind, findings, known := l.document(ctx, d)
		if !known {
			continue
		}

		ref := identity.RefOf(d.Object)

		c := checked{ref: ref, kind: kind, file: f.Name, line: d.Line("metadata.name")}
		if kind.Group == v1alpha1.GroupVersion.Group {
			c.doc = d
		}

		r.checked = append(r.checked, c)

		for _, dup := range d.Duplicates {
			r.findings = append(r.findings, show.Located{File: f.Name, Line: dup.Line, Finding: duplicateKey(ref, dup)})
		}

		for _, x := range findings {
			r.findings = append(r.findings, show.Located{File: f.Name, Line: d.Line(x.Field), Finding: x})
		}
	}

	return r
}

func duplicateKey(ref identity.Ref, d manifest.Duplicate) show.Finding {
	return show.Finding{
		Severity: show.SeverityError, Object: ref, Reason: show.ReasonDuplicateKey, Field: d.Field,
		Message: fmt.Sprintf("set before on line %d, and only the last value counts", d.First), Fix: "remove one of the two",
	}
}

// document checks one document alone, and is false for kinds that are not ours.
func (l *Linter) document(ctx context.Context, d *manifest.Document) (schema.GroupKind, []show.Finding, bool) {
	ref := identity.RefOf(d.Object)

	gk, version, ok := l.identify(ref)
	if !ok {
		return gk, nil, false
	}

	validator := l.kinds[gk]
	out := naming(ref, gk, version, validator.Served())

	if !slices.Contains(validator.Served(), version) {
		version = validator.Served()[0]
	}

	violations, err := validator.Validate(ctx, version, d.Object)
	if err != nil {
		out = append(out, show.Finding{Severity: show.SeverityError, Object: ref, Reason: string(field.ErrorTypeInternal), Message: err.Error()})
	}

	var decided []show.Finding
	if rules := deciders[gk]; rules != nil {
		decided = rules(d.Object)
	}

	return gk, append(out, unite(fromSchema(ref, d, violations), decided)...), true
}

// identify finds the kind that a document means. One that is spelt in another
// case or has no apiVersion is still ours: kubectl would refuse it.
func (l *Linter) identify(ref identity.Ref) (gk schema.GroupKind, version string, ok bool) {
	group, version, _ := strings.Cut(ref.APIVersion, "/")
	gk = schema.GroupKind{Group: group, Kind: ref.Kind}

	if kind, known := l.folded[fold(gk)]; known {
		return schema.GroupKind{Group: group, Kind: kind}, version, true
	}

	if ref.APIVersion == "" {
		for known := range l.kinds {
			if known.Kind == ref.Kind {
				return known, "", true
			}
		}
	}

	return gk, version, false
}

// naming checks apiVersion and kind.
func naming(ref identity.Ref, gk schema.GroupKind, version string, served []string) []show.Finding {
	var out []show.Finding

	add := func(reason, path, value, message, fix string) {
		out = append(out, show.Finding{
			Severity: show.SeverityError, Object: ref, Reason: reason, Field: path, Value: value, Message: message, Fix: fix,
		})
	}

	if want := fmt.Sprintf("write %q", gk.Group+"/"+served[0]); ref.APIVersion == "" {
		add(string(field.ErrorTypeRequired), "apiVersion", "", "is required", want)
	} else if !slices.Contains(served, version) {
		add(show.ReasonUnserved, "apiVersion", ref.APIVersion,
			fmt.Sprintf("version %q is not served, only %s", version, strings.Join(served, ", ")), want)
	}

	if ref.Kind != gk.Kind {
		add(show.ReasonKind, "kind", ref.Kind, fmt.Sprintf("kind %q is unknown", ref.Kind), fmt.Sprintf("write %q", gk.Kind))
	}

	return out
}

func fromSchema(ref identity.Ref, d *manifest.Document, all []crdschema.Violation) []show.Finding {
	out := make([]show.Finding, len(all))

	for i, v := range all {
		out[i] = show.Finding{
			Severity: show.SeverityError, Object: ref, Reason: v.Reason,
			Field: v.Field, Value: v.Value, Message: v.Message, Fix: v.Fix,
		}

		if text, ok := d.Text(v.Field); ok {
			out[i].Value = text
		}

		if v.Reason != crdschema.ReasonUnknownField {
			out[i].Message = withValue(out[i].Value, v.Message)
		}
	}

	return out
}

// withValue puts a refused value before the words that refuse it, if they do
// not name it themselves.
func withValue(value, message string) string {
	const shown = 64

	switch {
	case value == "" || strings.Contains(message, strconv.Quote(value)):
		return message
	case len(value) > shown:
		value = strings.ToValidUTF8(value[:shown], "") + "..."
	}

	if strings.HasPrefix(message, "must ") || strings.HasPrefix(message, "should ") || strings.HasPrefix(message, "cannot ") {
		return fmt.Sprintf("%q %s", value, message)
	}

	return fmt.Sprintf("%q is not valid: %s", value, message)
}

// unite puts two judgements together without saying anything twice. About a
// value of the wrong type the schema has the last word; about any other field
// the rules do, because they know how to mend it.
func unite(bySchema, byRule []show.Finding) []show.Finding {
	wrongType, ruled := map[string]bool{}, map[string]bool{}

	for _, f := range bySchema {
		if f.Reason == string(field.ErrorTypeTypeInvalid) {
			wrongType[f.Field] = true
		}
	}

	var kept []show.Finding

	for _, f := range byRule {
		if within(f.Field, wrongType) || f.Reason == verdict.ReasonUndecodable && explained(f.Field, wrongType) {
			continue
		}

		ruled[f.Field] = ruled[f.Field] || f.Severity == show.SeverityError
		kept = append(kept, f)
	}

	out := slices.DeleteFunc(bySchema, func(f show.Finding) bool { return !wrongType[f.Field] && ruled[f.Field] })

	return append(out, kept...)
}

// within is true for a field that is one of fields or stands below one.
func within(name string, fields map[string]bool) bool {
	for i := range len(name) + 1 {
		if (i == len(name) || name[i] == '.' || name[i] == '[') && fields[name[:i]] {
			return true
		}
	}

	return false
}

// explained is true if one of fields stands below name and so says more
// exactly why name cannot be decoded.
func explained(name string, fields map[string]bool) bool {
	for f := range fields {
		if within(f, map[string]bool{name: true}) {
			return true
		}
	}

	return false
}

// A Report is the result of arbor lint.
type Report struct {
	Findings []show.Located `json:"findings"`
	Summary  Summary        `json:"summary"`

	Unreadable bool `json:"-"`
}

// Summary counts what a run of arbor lint saw.
type Summary struct {
	Files     int `json:"files"`
	Documents int `json:"documents"`
	Checked   int `json:"checked"`
	Errors    int `json:"errors"`
	Warnings  int `json:"warnings"`
}

func (s Summary) String() string {
	return fmt.Sprintf("%s, %s, %d checked: %s, %s", show.Count(s.Files, "file"), show.Count(s.Documents, "document"),
		s.Checked, show.Count(s.Errors, "error"), show.Count(s.Warnings, "warning"))
}

// Combine makes one report of those of all files, in their order, and finds
// what no document shows alone: objects that are defined twice, and those that
// cannot be there together.
func Combine(files []FileReport) Report {
	compare(files)
	findDeadlocks(files)

	r := Report{Findings: []show.Located{}}
	first := map[identity.Identity]checked{}

	for _, f := range files {
		for _, c := range f.checked {
			if twice, ok := sameObject(first, c); ok {
				f.findings = append(f.findings, twice)
			}
		}

		slices.SortStableFunc(f.findings, func(a, b show.Located) int { return cmp.Compare(a.Line, b.Line) })

		r.Findings = append(r.Findings, f.findings...)
		r.Unreadable = r.Unreadable || f.unreadable
		r.Summary.Files++
		r.Summary.Documents += f.documents
		r.Summary.Checked += len(f.checked)
	}

	r.Summary.Errors, r.Summary.Warnings = show.CountSeverities(r.Findings, func(l show.Located) show.Severity { return l.Severity })

	return r
}

// compare adds to each file what is wrong with its objects because of others, in
// whichever file those are. Objects that have no name yet are left out; of those
// that are defined twice the last counts, as when they are applied.
func compare(files []FileReport) {
	type place struct {
		checked

		report *FileReport
	}

	var s findings.Survey

	places := map[ipamaudit.Object]place{}

	for i := range files {
		for _, c := range files[i].checked {
			if c.doc != nil && c.ref.Name != "" {
				s.Add(c.kind, c.doc.Object)
				places[ipamaudit.Object{Kind: c.kind.Kind, Namespace: c.ref.Namespace, Name: c.ref.Name}] = place{c, &files[i]}
			}
		}
	}

	for _, f := range ipamaudit.Preview(s.Inventory) {
		if at, ok := places[f.Object]; ok {
			found := findings.FromEstate(f)
			found.Object = at.ref
			at.report.findings = append(at.report.findings, show.Located{File: at.file, Line: at.doc.Line(f.Field), Finding: found})
		}
	}
}

func sameObject(first map[identity.Identity]checked, c checked) (show.Located, bool) {
	if c.ref.Name == "" {
		return show.Located{}, false
	}

	was, twice := first[c.ref.Identity()]
	if !twice {
		first[c.ref.Identity()] = c

		return show.Located{}, false
	}

	return show.Located{File: c.file, Line: c.line, Finding: show.Finding{
		Severity: show.SeverityWarning, Object: c.ref, Reason: show.ReasonSameObject, Field: "metadata.name", Value: c.ref.Name,
		Message: fmt.Sprintf("the same object is defined in %s:%d, and the last one applied wins", was.file, was.line),
		Fix:     "remove or rename one of the two",
	}}, true
}
