package delivery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/decide/delivery/expression"
)

const (
	// DefaultInterval is the reconcile interval of those that ask for the default.
	DefaultInterval = 5 * time.Minute
	// leastInterval is how short an interval can be.
	leastInterval = time.Second

	// infraGroup is the readiness group of kinds that other objects need to exist, and the negative
	// of its deletion group.
	infraGroup = -100

	// background is the deletion strategy of objects that have none.
	background = "background"
)

// infra are the kinds, of any API group, that come before all other kinds unless their annotations
// differ.
var infra = map[string]bool{
	"Namespace": true, "PriorityClass": true, "NetworkPolicy": true, "ResourceQuota": true, "LimitRange": true,
	"PodSecurityPolicy": true, "PodDisruptionBudget": true, "ServiceAccount": true, "Secret": true, "SecretList": true,
	"ConfigMap": true, "StorageClass": true, "PersistentVolume": true, "PersistentVolumeClaim": true, crdKind: true,
	"ClusterRole": true, "ClusterRoleList": true, "ClusterRoleBinding": true, "ClusterRoleBindingList": true,
	"Role": true, "RoleList": true, "RoleBinding": true, "RoleBindingList": true, "Service": true, "EtcdCluster": true,
}

// inherited are the annotations that fall back to those of the composition.
var inherited = []string{
	enov1.AnnotationReconcileInterval, enov1.AnnotationUseDefaultReconcileInterval, enov1.AnnotationReplace, enov1.AnnotationDisableUpdates,
	enov1.AnnotationDisableReconciliation, enov1.AnnotationDeletionStrategy, enov1.AnnotationReadinessMode,
	enov1.AnnotationReplaceOnConflict,
}

// Inherited are the annotations of a composition that manifests fall back to.
func Inherited() []string { return slices.Clone(inherited) }

// Settings are what annotations specify about the delivery of a manifest.
type Settings struct {
	// Interval is how often the object is read even if it was not changed, 0 for never.
	Interval time.Duration
	// Replace has the object written as a whole. DisableUpdates has it made once and
	// never changed, DisableReconciliation has it left alone.
	Replace, DisableUpdates, DisableReconciliation bool
	// ReplaceOnConflict has the object deleted and created again if a change of it is rejected
	// because a field is immutable.
	ReplaceOnConflict bool
	// Orphan leaves the object behind when the composition is deleted, Foreground waits
	// until it is gone.
	Orphan, Foreground bool
	// Prune is when the object is deleted if a synthesis drops the manifest.
	Prune string
	// FailOpen passes errors over.
	FailOpen bool
	// ReadinessGroup is after which objects this one is made, DeletionGroup after
	// which it is deleted, nil if it does not matter.
	ReadinessGroup int
	DeletionGroup  *int
	// Kstatus has the object be ready only once it is healthy.
	Kstatus bool
	// Scopes are whose fields are taken over from other field managers, instead of the default of
	// the kind.
	Scopes []fields.Scope
	// Mode is how much of the scopes is taken over.
	Mode fields.Mode

	checks []check
	// invalid are settings that a synthesis must not have. warnings are about settings
	// that Eno ignores, too. Delivery ignores all of them.
	invalid, warnings []error
}

// Warnings are the settings that are ignored because their values are invalid. They
// never keep an object from being applied or deleted.
func (s *Settings) Warnings() []error { return slices.Concat(s.invalid, s.warnings) }

// A settingError is an annotation with an invalid value.
type settingError struct {
	annotation, value, fix string
}

func (e *settingError) Error() string {
	return fmt.Sprintf("annotation %s: cannot use %q: %s", e.annotation, e.value, e.fix)
}

// parser reads annotations, and collects invalid ones.
type parser struct {
	own, composition  map[string]string
	invalid, warnings []error
}

// get returns the value of an annotation of the manifest, or else of the
// composition, if it is one of those that fall back.
func (p *parser) get(name string) (string, bool) {
	value, ok := p.own[name]
	if !ok && slices.Contains(inherited, name) {
		value, ok = p.composition[name]
	}

	return value, ok
}

// wrong records a setting that a synthesis must not have.
func (p *parser) wrong(annotation, value, fix string) {
	p.invalid = append(p.invalid, &settingError{annotation: annotation, value: value, fix: fix})
}

// ignored records a setting that is not used.
func (p *parser) ignored(annotation, value, fix string) {
	p.warnings = append(p.warnings, &settingError{annotation: annotation, value: value, fix: fix})
}

// boolean reads a setting that is true if it is exactly "true", as Eno does.
func (p *parser) boolean(name string) bool {
	value, ok := p.get(name)
	if ok && value != "true" && value != "false" {
		p.ignored(name, value, `it counts as "false"; write "true" or "false"`)
	}

	return value == "true"
}

// failOpen is read as Eno reads it: of the manifest only, and with every form of true.
func (p *parser) failOpen(byDefault bool) bool {
	value, ok := p.own[enov1.AnnotationFailOpen]
	if !ok {
		return byDefault
	}
	open, err := strconv.ParseBool(value)
	if err != nil {
		p.ignored(enov1.AnnotationFailOpen, value, `it counts as the default, which is --fail-open; write "true" or "false"`)

		return byDefault
	}

	return open
}

// number reads a whole number of the manifest's own.
func (p *parser) number(name string) *int {
	value, ok := p.own[name]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		p.wrong(name, value, `write a whole number, such as "0" or "-5"`)

		return nil
	}

	return &n
}

func (r *Reader) settings(own, composition map[string]string, kind string) Settings {
	p := &parser{own: own, composition: composition}
	s := Settings{
		Interval:              p.interval(),
		Replace:               p.boolean(enov1.AnnotationReplace),
		DisableUpdates:        p.boolean(enov1.AnnotationDisableUpdates),
		DisableReconciliation: p.boolean(enov1.AnnotationDisableReconciliation),
		ReplaceOnConflict:     p.boolean(enov1.AnnotationReplaceOnConflict),
		FailOpen:              p.failOpen(r.FailOpen),
		DeletionGroup:         p.number(enov1.AnnotationDeletionGroup),
		Scopes:                p.scopes(),
		Mode:                  p.mode(),
		checks:                p.checks(r.expressions),
	}
	s.Orphan, s.Foreground = p.strategy()
	if infra[kind] {
		s.ReadinessGroup = infraGroup
		if s.DeletionGroup == nil {
			after := -infraGroup
			s.DeletionGroup = &after
		}
	}
	if n := p.number(enov1.AnnotationReadinessGroup); n != nil {
		s.ReadinessGroup = *n
	}

	s.Kstatus = p.kstatus(r.Readiness, len(s.checks) > 0)
	s.Prune = p.prune()
	s.invalid, s.warnings = p.invalid, p.warnings

	return s
}

func (p *parser) interval() time.Duration {
	if value, ok := p.get(enov1.AnnotationReconcileInterval); ok {
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			p.ignored(enov1.AnnotationReconcileInterval, value, `there is no interval; write a duration such as "30s" or "5m", or leave it out: changes are seen without it`)

			return 0
		}

		return max(d, leastInterval)
	}
	if p.boolean(enov1.AnnotationUseDefaultReconcileInterval) {
		return DefaultInterval
	}

	return 0
}

func (p *parser) strategy() (orphan, foreground bool) {
	value, ok := p.get(enov1.AnnotationDeletionStrategy)
	orphan, foreground = enov1.IsOrphan(value), enov1.IsForeground(value)
	if ok && !orphan && !foreground && !strings.EqualFold(value, background) {
		p.ignored(enov1.AnnotationDeletionStrategy, value, fmt.Sprintf("the object is deleted in the background; write %q or %q", enov1.DeletionOrphan, enov1.DeletionForeground))
	}

	return orphan, foreground
}

// prune reads when a dropped object is deleted. The setting of the composition overrides that of
// the manifest, which cannot be edited any more. A group that is written explicitly is an order
// that the author wants.
func (p *parser) prune() string {
	value, ok := p.composition[enov1.AnnotationPrune]
	if !ok {
		value, ok = p.own[enov1.AnnotationPrune]
	}
	_, ordered := p.own[enov1.AnnotationReadinessGroup]
	switch value {
	case enov1.PruneLast, enov1.PruneWithGroup, enov1.PruneFirst, enov1.PruneNever:
		return value
	}
	if ok {
		p.ignored(enov1.AnnotationPrune, value, fmt.Sprintf("write %q, %q, %q or %q", enov1.PruneLast, enov1.PruneWithGroup, enov1.PruneFirst, enov1.PruneNever))
	}
	if ordered {
		return enov1.PruneWithGroup
	}

	return enov1.PruneLast
}

// kstatus reads whether the object has to be healthy to be ready. The setting of the manifest
// counts. If it has none but has expressions, these alone decide; otherwise the composition
// decides, and else the default.
func (p *parser) kstatus(byDefault string, checked bool) bool {
	value, ok := p.get(enov1.AnnotationReadinessMode)
	_, own := p.own[enov1.AnnotationReadinessMode]
	switch {
	case ok && value != enov1.ReadinessKstatus && value != enov1.ReadinessEno:
		p.ignored(enov1.AnnotationReadinessMode, value, fmt.Sprintf("it counts as the default, which is --readiness; write %q or %q", enov1.ReadinessEno, enov1.ReadinessKstatus))

		return byDefault == enov1.ReadinessKstatus && !checked
	case own:
		return value == enov1.ReadinessKstatus
	case checked:
		return false
	case ok:
		return value == enov1.ReadinessKstatus
	}

	return byDefault == enov1.ReadinessKstatus
}

// scopes reads which fields are taken over.
func (p *parser) scopes() []fields.Scope {
	value, ok := p.own[enov1.AnnotationMigrateOwnership]
	if !ok {
		return nil
	}
	all, err := fields.ParseScopes(value)
	if err != nil {
		p.wrong(enov1.AnnotationMigrateOwnership, value, err.Error())
	}

	return all
}

// mode reads how much of the scopes is taken over.
func (p *parser) mode() fields.Mode {
	switch value, ok := p.own[enov1.AnnotationMigrateMode]; {
	case value == enov1.MigrateWhole:
		return fields.Whole
	case ok && value != enov1.MigrateNeeded:
		p.ignored(enov1.AnnotationMigrateMode, value, fmt.Sprintf("only what has to be removed is taken over; write %q or %q", enov1.MigrateNeeded, enov1.MigrateWhole))
	}

	return fields.Needed
}

// checks compiles the readiness expressions, in the order of their names.
func (p *parser) checks(c *expression.Compiler) []check {
	var names []string
	for name := range p.own {
		if name == enov1.AnnotationReadiness || strings.HasPrefix(name, enov1.AnnotationReadiness+"-") && name != enov1.AnnotationReadinessGroup {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []check
	for _, name := range names {
		ready, err := c.Compile(p.own[name])
		if err != nil {
			p.wrong(name, p.own[name], fmt.Sprintf("write a CEL expression about %s and %s: %v", expression.VarSelf, expression.VarComposition, err))

			continue
		}
		all = append(all, check{name: name, ready: ready})
	}

	return all
}
