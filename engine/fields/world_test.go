package fields_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/arbor-control/arbor/engine/fields"
)

// schema is that of the random objects: a bit of everything there is.
const schema = `types:
- name: object
  map:
    fields:
    - name: apiVersion
      type: {scalar: string}
    - name: kind
      type: {scalar: string}
    - name: metadata
      type: {namedType: meta}
    - name: spec
      type: {namedType: spec}
    - name: status
      type: {namedType: status}
- name: meta
  map:
    fields:
    - name: name
      type: {scalar: string}
    - name: labels
      type: {map: {elementType: {scalar: string}}}
    - name: finalizers
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
- name: status
  map:
    fields:
    - name: ready
      type: {scalar: string}
- name: spec
  map:
    fields:
    - name: replicas
      type: {scalar: string}
    - name: selector
      type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}
    - name: strategy
      type: {namedType: strategy}
    - name: args
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    - name: ports
      type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}}
    - name: owners
      type: {list: {elementType: {namedType: owner}, elementRelationship: associative, keys: [uid]}}
    - name: containers
      type: {list: {elementType: {namedType: container}, elementRelationship: associative, keys: [name]}}
- name: strategy
  map:
    fields:
    - name: type
      type: {scalar: string}
    - name: rolling
      type: {map: {fields: [{name: surge, type: {scalar: string}}, {name: unavailable, type: {scalar: string}}]}}
- name: owner
  map:
    fields:
    - name: uid
      type: {scalar: string}
    - name: controller
      type: {scalar: string}
    elementRelationship: atomic
- name: port
  map:
    fields:
    - name: port
      type: {scalar: numeric}
    - name: protocol
      type: {scalar: string}
      default: TCP
    - name: target
      type: {scalar: string}
- name: container
  map:
    fields:
    - name: name
      type: {scalar: string}
    - name: image
      type: {scalar: string}
    - name: command
      type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}
    - name: limits
      type: {map: {elementType: {scalar: string}}}
    - name: env
      type: {list: {elementType: {namedType: env}, elementRelationship: associative, keys: [name]}}
- name: env
  map:
    fields:
    - name: name
      type: {scalar: string}
    - name: value
      type: {scalar: string}
`

var objectType = func() typed.ParseableType {
	p, err := typed.NewParser(schema)
	if err != nil {
		panic(err)
	}

	return p.Type("object")
}()

// A world draws objects, entries and requests at random. Every scalar in an
// object but a protocol is there once, so that what becomes of it can be seen
// by its value alone.
type world struct{ *rand.Rand }

func newWorld(seed uint64) world { return world{rand.New(rand.NewPCG(seed, 11))} }

// chance is true n times in 10.
func (w world) chance(n int) bool { return w.IntN(10) < n }

// object draws one of which each part is there with a chance of n in 10.
func (w world) object(n int) map[string]any {
	o := map[string]any{"apiVersion": "v1", "kind": "Thing"}
	meta := map[string]any{"name": "thing"}
	w.put(meta, "labels", n, w.strings(n, "label-a", "label-b", "label-c"))
	w.put(meta, "finalizers", n, w.list(n, "finalizer-a", "finalizer-b"))
	o["metadata"] = meta
	w.put(o, "status", n, map[string]any{"ready": "ready"})

	spec := map[string]any{}
	w.put(spec, "replicas", n, "replicas")
	w.put(spec, "selector", n, map[string]any{"app": "selected"})
	w.put(spec, "args", n, w.list(n, "arg-a", "arg-b", "arg-c"))
	strategy := map[string]any{}
	w.put(strategy, "type", n, "type")
	w.put(strategy, "rolling", n, w.strings(n, "surge", "unavailable"))
	w.put(spec, "strategy", n, strategy)
	var ports []any
	for i, protocol := range []string{"TCP", "UDP", "TCP"} {
		if port := map[string]any{"port": float64(80 + i), "protocol": protocol}; w.chance(n) {
			w.put(port, "target", n, fmt.Sprintf("target-%d", i))
			ports = append(ports, port)
		}
	}
	w.put(spec, "ports", n, ports)
	w.put(spec, "owners", n, w.list(n,
		map[string]any{"uid": "uid-a", "controller": "controller-a"}, map[string]any{"uid": "uid-b", "controller": "controller-b"},
	))
	w.put(spec, "containers", n, w.containers(n))
	w.put(o, "spec", 9, spec)

	return o
}

func (w world) containers(n int) []any {
	var all []any
	for _, name := range []string{"alpha", "beta", "gamma"} {
		if !w.chance(n) {
			continue
		}
		c := map[string]any{"name": name}
		w.put(c, "image", n, name+"-image")
		w.put(c, "command", n, []any{name + "-command"})
		w.put(c, "limits", n, w.strings(n, name+"-cpu", name+"-memory"))
		var env []any
		for _, e := range []string{"x", "y"} {
			if v := map[string]any{"name": name + "-" + e}; w.chance(n) {
				w.put(v, "value", n, name+"-value-"+e)
				env = append(env, v)
			}
		}
		w.put(c, "env", n, env)
		all = append(all, c)
	}

	return all
}

func (w world) strings(n int, names ...string) map[string]any {
	m := map[string]any{}
	for _, name := range names {
		w.put(m, name, n, "value of "+name)
	}

	return m
}

func (w world) list(n int, values ...any) []any {
	return slices.DeleteFunc(slices.Clone(values), func(any) bool { return !w.chance(n) })
}

// put sets what is not empty, sometimes.
func (w world) put(in map[string]any, name string, n int, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	}
	if w.chance(n) {
		in[name] = v
	}
}

// fieldSet is the set of an object, with its schema.
func fieldSet(o map[string]any) *fieldpath.Set {
	tv, err := objectType.FromUnstructured(o)
	if err != nil {
		panic(err)
	}
	s, err := tv.ToFieldSet()
	if err != nil {
		panic(err)
	}

	return s.Difference(fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata", "name"),
	))
}

// parents are paths that updates hold in addition to those below them.
var parents = []fieldpath.Path{
	fieldpath.MakePathOrDie("metadata", "labels"),
	fieldpath.MakePathOrDie("metadata", "finalizers"),
	fieldpath.MakePathOrDie("spec", "strategy"),
	fieldpath.MakePathOrDie("spec", "strategy", "rolling"),
	fieldpath.MakePathOrDie("spec", "containers"),
	fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "alpha"), "limits"),
	fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "alpha"), "env"),
}

// part draws a part of a set. Items come with their keys more often than not,
// and a key that has no default is never without the other.
func (w world) part(of *fieldpath.Set, n int) *fieldpath.Set {
	part := &fieldpath.Set{}
	for p := range of.All() {
		if !w.chance(n) {
			continue
		}
		part.Insert(p)
		if last := p[len(p)-1]; last.Key != nil && len(p) > 1 && !p[1].Equals(fieldpath.FieldNameElement("owners")) && w.chance(7) {
			for _, f := range *last.Key {
				part.Insert(append(p.Copy(), fieldpath.FieldNameElement(f.Name)))
			}
		}
	}
	for p := range of.All() {
		if last := p[len(p)-1]; last.Key == nil || len(*last.Key) < 2 {
			continue
		}
		port, protocol := append(p.Copy(), fieldpath.FieldNameElement("port")), append(p.Copy(), fieldpath.FieldNameElement("protocol"))
		if part.Has(protocol) || part.Has(port) && p[len(p)-1].String() != `[port=80,protocol="TCP"]` {
			part.Insert(port)
			part.Insert(protocol)
		}
	}

	return part
}

// entries draws some over an object. There is always one that eno applied.
func (w world) entries(live map[string]any) fields.Entries {
	all := fieldSet(live)
	ghosts := fieldSet(w.object(9)).Difference(all)
	es := fields.Entries{{Manager: "eno", Operation: fields.Apply}, {Manager: "eno", Operation: fields.Update}}
	for _, name := range []string{"legacy", "kubectl", fields.BeforeFirstApply} {
		es = append(es, fields.Entry{Manager: name, Operation: fields.Update})
	}
	es = append(es,
		fields.Entry{Manager: "helm", Operation: fields.Apply},
		fields.Entry{Manager: "kubelet", Operation: fields.Update, Subresource: "status"},
	)
	es = slices.DeleteFunc(es, func(e fields.Entry) bool { return e.Operation != fields.Apply && w.chance(4) })
	for i := range es {
		es[i].APIVersion = "v1"
		if es[i].Manager != "eno" && w.chance(1) {
			es[i].APIVersion = "v0"
		}
		es[i].Fields = w.part(all, w.IntN(6))
		if es[i].Identity() == (fields.Identity{Manager: "eno", Operation: fields.Apply}) {
			es[i].Fields = w.part(all, 3+w.IntN(7))
		}
		for _, p := range parents {
			if es[i].Operation == fields.Update && all.Union(ghosts).WithPrefix(p[0]).Size() > 0 && w.chance(2) {
				es[i].Fields.Insert(p)
			}
		}
		if w.chance(2) {
			es[i].Fields = es[i].Fields.Union(w.part(ghosts, 2))
		}
	}
	w.Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })

	return es
}

// wanted draws an object to apply: some of the live one, and now and then
// something new.
func (w world) wanted(live map[string]any) map[string]any {
	o := w.object(w.IntN(10))
	if w.chance(5) {
		tv, err := objectType.FromUnstructured(live)
		if err != nil {
			panic(err)
		}
		if some, ok := tv.ExtractItems(w.part(fieldSet(live), 6), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any); ok {
			o = some
		}
	}
	o["apiVersion"], o["kind"] = "v1", "Thing"
	if _, ok := o["metadata"].(map[string]any); !ok {
		o["metadata"] = map[string]any{}
	}
	o["metadata"].(map[string]any)["name"] = "thing"

	return o
}
