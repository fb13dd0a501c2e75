package fields_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// A twin does what the package does with lists of paths, each a line of text,
// and answers every question by going through all lines again. It knows the
// schema.
type twin struct {
	// live are the paths of the object, with those above them.
	live lines
	held map[fields.Identity]lines
	// version of each entry.
	version map[fields.Identity]string
}

type lines map[string]bool

// line writes a path with a bar behind each step, so that what is below it
// begins with it.
func line(p fieldpath.Path) string {
	var b strings.Builder
	for _, pe := range p {
		b.WriteString(pe.String() + "|")
	}

	return b.String()
}

func linesOf(s *fieldpath.Set) lines {
	all := lines{}
	if s != nil {
		s.Iterate(func(p fieldpath.Path) { all[line(p)] = true })
	}

	return all
}

// at reports whether there is a line at the path or below it.
func (l lines) at(path string) bool {
	for other := range l {
		if strings.HasPrefix(other, path) {
			return true
		}
	}

	return false
}

// below reports whether there is a line below the path.
func (l lines) below(path string) bool {
	for other := range l {
		if strings.HasPrefix(other, path) && other != path {
			return true
		}
	}

	return false
}

// keep drops the lines that are not in other.
func (l lines) keep(other lines) lines {
	maps.DeleteFunc(l, func(path string, _ bool) bool { return !other[path] })

	return l
}

func newTwin(live map[string]any, es fields.Entries) *twin {
	w := &twin{live: lines{}, held: map[fields.Identity]lines{}, version: map[fields.Identity]string{}}
	w.live[".metadata|"] = true // for its name, which is in no set
	fieldSet(live).Iterate(func(p fieldpath.Path) {
		for i := range p {
			w.live[line(p[:i+1])] = true
		}
	})
	for _, e := range es {
		if !e.Fields.Empty() {
			w.held[e.Identity()] = linesOf(e.Fields)
			w.version[e.Identity()] = e.APIVersion
		}
	}

	return w
}

// holders of a path, in the order of their names.
func (w *twin) holders(path string) []fields.Identity {
	var all []fields.Identity
	for id, held := range w.held {
		if held[path] {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, fields.Identity.Compare)

	return all
}

// state visits all paths below.
func (w *twin) state(path string) fields.State {
	var kinds [][]fields.Identity
	for other := range w.live {
		if !strings.HasPrefix(other, path) {
			continue
		}
		if holders := w.holders(other); len(holders) > 0 || !w.live.below(other) {
			kinds = append(kinds, holders)
		}
	}
	for _, k := range kinds {
		if !slices.Equal(k, kinds[0]) {
			return fields.Split
		}
	}

	return []fields.State{fields.Unowned, fields.Sole, fields.CoOwned}[min(len(kinds[0]), 2)]
}

// A twinScope is a scope, and an expression for the lines that are in it.
type twinScope struct {
	text string
	line *regexp.Regexp
}

var twinScopes = []twinScope{
	{"spec.containers", regexp.MustCompile(`^\.spec\|\.containers\|`)},
	{"spec.containers[*]", regexp.MustCompile(`^\.spec\|\.containers\|.`)},
	{"spec.containers[name=alpha]", regexp.MustCompile(`^\.spec\|\.containers\|\[name="alpha"\]\|`)},
	{"spec.containers[name=~^(alpha|gamma)$]", regexp.MustCompile(`^\.spec\|\.containers\|\[name="(alpha|gamma)"\]\|`)},
	{"spec.containers[name=beta].image", regexp.MustCompile(`^\.spec\|\.containers\|\[name="beta"\]\|\.image\|`)},
	{"spec.containers[*].env", regexp.MustCompile(`^\.spec\|\.containers\|[^|]*\|\.env\|`)},
	{"spec.containers[name=alpha].command[=alpha-command]", regexp.MustCompile(`^\.spec\|\.containers\|\[name="alpha"\]\|\.command\|`)},
	{"spec.ports[port=80]", regexp.MustCompile(`^\.spec\|\.ports\|\[port=80,.*\]\|`)},
	{`spec.ports[protocol="TCP",port=82]`, regexp.MustCompile(`^\.spec\|\.ports\|\[port=82,.*\]\|`)},
	{`spec.args[="arg-a"]`, regexp.MustCompile(`^\.spec\|\.args\|\[="arg-a"\]\|`)},
	{`spec.args[=~"-[bc]$"]`, regexp.MustCompile(`^\.spec\|\.args\|\[="arg-[bc]"\]\|`)},
	{"spec.owners[uid=uid-a].controller", regexp.MustCompile(`^\.spec\|\.owners\|\[uid="uid-a"\]\|`)},
	{"spec.selector.app", regexp.MustCompile(`^\.spec\|\.selector\|`)},
	{"spec.selector.nothing", regexp.MustCompile(`^never$`)},
	{"spec.strategy.rolling", regexp.MustCompile(`^\.spec\|\.strategy\|\.rolling\|`)},
	{`metadata.labels["label-a"]`, regexp.MustCompile(`^\.metadata\|\.labels\|\.label-a\|`)},
	{"metadata", regexp.MustCompile(`^\.metadata\|`)},
	{"spec.*", regexp.MustCompile(`^\.spec\|.`)},
	{"spec", regexp.MustCompile(`^\.spec\|`)},
	{"*", regexp.MustCompile(`.`)},
}

var deniedLine = regexp.MustCompile(`^\.status\||^\.metadata\|\.finalizers\|`)

// inScope are the live paths of a scope that may be moved.
func (w *twin) inScope(s twinScope) lines {
	all := maps.Clone(w.live)
	maps.DeleteFunc(all, func(path string, _ bool) bool { return !s.line.MatchString(path) || deniedLine.MatchString(path) })

	return all
}

func (w *twin) check(s twinScope, manager string) (exists, fully bool, others []string) {
	scope, all, mine, updates := w.inScope(s), map[string]bool{}, false, false
	for id, held := range w.held {
		for path := range held {
			switch {
			case !scope[path] || id.Subresource != "":
			case id.Manager != manager:
				all[id.Manager] = true
			case id.Operation == fields.Apply:
				mine = true
			default:
				updates = true
			}
		}
	}
	for path := range w.live {
		exists = exists || s.line.MatchString(path)
	}

	return exists, mine && !updates && len(all) == 0, slices.Sorted(maps.Keys(all))
}

// steps are the path and those above it, the longest first.
func steps(path string) []string {
	all := []string{path}
	for at := strings.LastIndex(strings.TrimSuffix(path, "|"), "|"); at >= 0; at = strings.LastIndex(path[:at], "|") {
		all = append(all, path[:at+1])
	}

	return all
}

var (
	itemLine = regexp.MustCompile(`\]\|$`)
	keyLine  = regexp.MustCompile(`(\[name=[^|]*\|\.name|\[port=[^|]*\|\.(port|protocol))\|$`)
)

// needed is the rule, for one path of the scope.
func (w *twin) needed(scope lines, path, manager string, previous, next lines) bool {
	mine, updates := lines{}, lines{}
	for id, held := range w.held {
		if id.Manager != manager || id.Subresource != "" {
			continue
		}
		for p := range held {
			mine[p] = mine[p] || w.live[p]
			updates[p] = updates[p] || id.Operation == fields.Update
		}
	}
	maps.DeleteFunc(mine, func(_ string, live bool) bool { return !live })
	wanted := func(p string) bool { return mine.at(p) || previous.at(p) || next.at(p) }
	for _, item := range steps(path) {
		if scope[item] && itemLine.MatchString(item) && wanted(item) && !next.at(item) {
			return true
		}
	}
	above := steps(path)[1:]
	switch {
	case len(above) > 0 && scope[above[0]] && keyLine.MatchString(path) && wanted(above[0]):
		return true
	case !wanted(path):
		return false
	default:
		return itemLine.MatchString(path) || !w.live.below(path) || updates[path]
	}
}

// plan moves line by line.
func (w *twin) plan(s twinScope, manager string, whole bool, previous, next lines) map[fields.Identity]lines {
	to := fields.Identity{Manager: manager, Operation: fields.Apply}
	after := map[fields.Identity]lines{}
	for id, held := range w.held {
		after[id] = maps.Clone(held)
	}
	gained := lines{}
	scope := w.inScope(s)
	for path := range scope {
		if !whole && !w.needed(scope, path, manager, previous, next) {
			continue
		}
		for id, held := range w.held {
			if held[path] && id != to && id.Subresource == "" && w.version[id] == "v1" {
				delete(after[id], path)
				gained[path] = true
			}
		}
	}
	if after[to] == nil {
		after[to] = lines{}
	}
	maps.Copy(after[to], gained)
	for path := range scope {
		inItem := slices.ContainsFunc(steps(path)[1:], func(p string) bool { return scope[p] && itemLine.MatchString(p) && !next.at(p) })
		isItem := itemLine.MatchString(path)
		orphan := len(w.holders(path)) == 0 && !next.at(path) && (whole || w.needed(scope, path, manager, previous, next))
		part := isItem && maps.Clone(after[to]).keep(w.live).at(path)
		before := previous[path] && (isItem || !w.live.below(path) && !inItem)
		if orphan && (part || before) {
			gained[path] = true
		}
	}
	maps.Copy(after[to], gained)
	maps.DeleteFunc(after, func(_ fields.Identity, l lines) bool { return len(l) == 0 })

	return after
}
