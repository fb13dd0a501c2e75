package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/engine/fields/fieldstest"
)

// fieldOwnership measures the processor time to report the owners of an object and to plan a move,
// for each byte of its entries: that must not depend on whether the bytes are managers or
// containers, nor on how many there are.
func fieldOwnership(b *harness.Board) error {
	for _, op := range []struct {
		name string
		run  func(*fieldLoad) error
	}{{"report", (*fieldLoad).report}, {"plan", (*fieldLoad).plan}} {
		var perByte []float64
		for _, size := range fieldstest.Sizes {
			l, err := newFieldLoad(size)
			if err != nil {
				return err
			}
			if err := op.run(l); err != nil {
				return fmt.Errorf("%s of %s: %w", op.name, size.Name, err)
			}
			took := harness.FastestBy(processorTime, func() { _ = op.run(l) }) // it has just worked
			each := float64(took.Nanoseconds()) / float64(l.bytes)
			perByte = append(perByte, each)
			figure := "fields/" + op.name + "/" + size.Name
			b.Show(harness.Result{Name: figure, Value: each}, harness.Result{Name: figure + "-total", Value: took.Seconds() * 1000})
		}
		b.Show(harness.Result{Name: "fields/" + op.name + "/ratio", Value: slices.Max(perByte) / slices.Min(perByte)})
	}

	return nil
}

// processorTime is that of this process so far. On a busy machine a call of two
// milliseconds finds a moment without interruption, and one of a hundred does
// not, so that by the wall clock the large object would look dear.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it fails on wrong arguments only
	}

	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A fieldLoad is an object, its entries as they are read, and how many bytes
// they have as JSON.
type fieldLoad struct {
	object  map[string]any
	entries fields.Entries
	scope   fields.Scope
	bytes   int
}

func newFieldLoad(size fieldstest.Size) (*fieldLoad, error) {
	l := &fieldLoad{object: size.Deployment(), scope: fields.MustParseScope(fieldstest.Scope)}
	var err error
	if l.entries, err = fields.Read(l.object); err != nil {
		return nil, err
	}
	data, err := json.Marshal(l.entries)
	l.bytes = len(data)

	return l, err
}

// report does all that is needed to report the owners of a part of an object that was read.
func (l *fieldLoad) report() error {
	es, err := fields.Read(l.object)
	if err != nil {
		return err
	}
	if o := fields.New(l.object, es).CheckOwnership(l.scope, fieldstest.Applier); o.FullyOwned || len(o.OtherManagers) != len(es)-1 {
		return fmt.Errorf("ownership is not split among %d managers: %v", len(es), o.OtherManagers)
	}

	return nil
}

func (l *fieldLoad) plan() error {
	p, err := fields.NewPlan(l.object, l.entries, fields.Request{To: fieldstest.Applier, Scope: l.scope})
	if err == nil && len(p.Moves) == 0 {
		err = fmt.Errorf("nothing of %d entries is moved", len(l.entries))
	}

	return err
}
