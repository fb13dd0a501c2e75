package testcluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// A Cluster is what an offline cluster is read into.
type Cluster struct {
	Groups  *podgroups.Index
	Trial   *placement.Trial
	Factory informers.SharedInformerFactory
	Rules   gang.Rules
}

// Open reads a cluster that consists of objects.
func Open(t testing.TB, objects ...runtime.Object) *Cluster {
	t.Helper()
	source, client, factory := schedulertest.Connect(t, objects...)
	c := &Cluster{Factory: factory}
	var err error
	if c.Groups, err = podgroups.New(source, client, factory, c.Rules); err != nil {
		t.Fatal(err)
	}
	if c.Trial, err = placement.NewTrial(t.Context(), client, source, factory, schedulertest.DefaultProfiles(t), schedulertest.PluginsWith(placement.NewPacking)); err != nil {
		t.Fatal(err)
	}
	c.Trial.AnswerAny(settings.Name)
	c.Trial.SetNominated(podgroups.NominatedIn(c.Groups))
	factory.Policy().V1().PodDisruptionBudgets().Informer() // it is read, as the preemption plugin has it read
	schedulertest.SyncInformers(t, factory)
	if err := c.Groups.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	return c
}
