package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options are what to run, and where.
type Options struct {
	// Dir keeps everything that outlives a run.
	Dir string
	// TrustDir accepts a Dir that was not created here.
	TrustDir bool
	// Kubeconfig is where the administrator's kubeconfig appears when all is
	// ready. Empty: in Dir.
	Kubeconfig string
	// Port of the API server. 0: the one of the last run if it is free, or
	// any free one.
	Port int
	// Nodes is how many nodes kwok plays, and NodeGPUs how many GPUs each has.
	Nodes, NodeGPUs int
	// OwnScheduler is whether a program replaces the scheduler of Kubernetes.
	OwnScheduler bool
	// AuditLog is a file that every request to the API server is written to: the user, the request,
	// and whether it was allowed. If empty, there is no audit log.
	AuditLog string
	// NoFsync makes etcd faster and a power cut fatal: for tests.
	NoFsync bool
	// Kubelets prepares the API server for kubelets and the pods that they run: for tests.
	Kubelets bool
	// Programs returns what runs on the control plane.
	Programs func(Cluster) ([]Program, error)
	// Progress is called with each step while it happens.
	Progress io.Writer
	// Ready is called once everything is.
	Ready func(Report)
}

// A Cluster is what a program needs to know of the control plane it runs on.
type Cluster struct {
	// Kubeconfig is that of the programs, and User who they are for the API server.
	Kubeconfig, User string
	// Config is that of an administrator.
	Config *rest.Config
}

// A Program is one more child: this binary with other arguments.
type Program struct {
	Name  string
	Args  []string
	Ready func(context.Context) error
}

// A Report lists what runs.
type Report struct {
	Server     string
	Dir        string
	Kubeconfig string
	Children   []Child
	Took       time.Duration
}

// A Child is one process of a Report.
type Child struct {
	Name string
	PID  int
}

// Up runs a control plane until ctx ends, and returns when its last child is
// gone. It fails when something cannot be started or kept running.
func Up(ctx context.Context, o Options) error {
	started := time.Now()
	say := func(format string, args ...any) { fmt.Fprintf(o.Progress, "  "+format+"\n", args...) }

	h, err := openHome(o.Dir, o.TrustDir)
	if err != nil {
		return err
	}
	defer h.close()
	if o.Kubeconfig, err = ownKubeconfig(h, o.Kubeconfig); err != nil {
		return err
	}
	if err := h.settle(ctx, say); err != nil {
		return err
	}
	p, err := prepare(h, o)
	if err != nil {
		return err
	}

	s := &supervisor{home: h, say: say, pids: map[string]int{}}
	r := &running{supervisor: s, failed: make(chan error, 1)}
	defer r.end()

	if err := r.start(ctx, p.apiserver()); err != nil {
		return err
	}
	rest, err := p.rest(ctx, o)
	if err != nil {
		return err
	}
	if err := r.start(ctx, rest...); err != nil {
		return err
	}
	if err := p.creds.publish(o.Kubeconfig); err != nil {
		return err
	}
	// Its presence means that the cluster is ready.
	defer os.Remove(o.Kubeconfig)

	o.Ready(Report{Server: p.creds.server, Dir: h.path, Kubeconfig: o.Kubeconfig, Children: r.children(), Took: time.Since(started)})

	select {
	case <-ctx.Done():
		say("stopping")

		return nil
	case err := <-r.failed:
		return err
	}
}

func ownKubeconfig(h *home, path string) (string, error) {
	if path == "" {
		path = h.file("kubeconfig")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot use kubeconfig %s: %w", path, err)
	}

	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return "", fmt.Errorf("cannot write kubeconfig %s: its directory does not exist; choose another with --kubeconfig", path)
	}

	return path, clearKubeconfig(path)
}

// prepare chooses the port and writes all keys.
func prepare(h *home, o Options) (*plane, error) {
	port, err := choosePort(h, o.Port)
	if err != nil {
		return nil, err
	}
	if err := h.remember(state{Port: port}); err != nil {
		return nil, err
	}
	creds, err := newCredentials(h, port, time.Now())
	if err != nil {
		return nil, err
	}

	p := newPlane(h, creds, port, o.NoFsync)
	p.kubelets = o.Kubelets
	p.audit, err = auditFlags(h, o.AuditLog)

	return p, err
}

// choosePort takes the port that was asked for, else the one of the last run if
// it is free, else any.
func choosePort(h *home, asked int) (int, error) {
	if asked != 0 {
		if err := portFree(asked); err != nil {
			return 0, fmt.Errorf("port %d cannot be used: %w; choose another with --port, or none to get a free one", asked, err)
		}

		return asked, nil
	}
	if last := h.remembered().Port; last != 0 && portFree(last) == nil {
		return last, nil
	}
	ports, err := FreePorts(1)
	if err != nil {
		return 0, err
	}

	return ports[0], nil
}

// rest are all components that need the API server.
func (p *plane) rest(ctx context.Context, o Options) ([]component, error) {
	config, err := p.creds.config(admin)
	if err != nil {
		return nil, err
	}
	if err := syncNodes(ctx, config, o.Nodes, o.NodeGPUs); err != nil {
		return nil, err
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}

	all := []component{p.controllerManager(ports[0])}
	if !o.OwnScheduler {
		all = append(all, p.scheduler(ports[1]))
	}
	if o.Nodes > 0 {
		all = append(all, p.kwok(nodesReady(config)))
	}
	if o.Programs == nil {
		return all, nil
	}
	extra, err := o.Programs(Cluster{Kubeconfig: p.creds.kubeconfig(programs), User: identities[programs].user, Config: config})
	if err != nil {
		return nil, err
	}
	for _, e := range extra {
		all = append(all, component{name: e.Name, args: e.Args, ready: e.Ready})
	}

	return all, nil
}

// running holds the rounds of components that were started, in order.
type running struct {
	*supervisor

	failed chan error
	rounds []round
	names  []string
}

type round struct {
	cancel context.CancelFunc
	done   *sync.WaitGroup
}

// start starts components together and returns when all are ready. From then
// on, the first that cannot be kept running is reported on failed.
func (r *running) start(ctx context.Context, components ...component) error {
	// Rounds end one after the other, not when ctx does.
	keep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	this := round{cancel: cancel, done: &sync.WaitGroup{}}
	r.rounds = append(r.rounds, this)

	up := make(chan string, len(components))
	for _, c := range components {
		r.names = append(r.names, c.name)
		this.done.Go(func() {
			if err := r.keep(keep, c, func() { up <- c.name }); err != nil {
				select {
				case r.failed <- err:
				default: // one reason is enough
				}
			}
		})
	}

	began := time.Now()
	for range components {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.failed:
			return err
		case name := <-up:
			r.say("%-24s ready after %.1f s", name, time.Since(began).Seconds())
		}
	}

	return nil
}

// end stops the rounds, the last one first: the API server outlives everything
// that talks to it.
func (r *running) end() {
	for _, this := range slices.Backward(r.rounds) {
		this.cancel()
		this.done.Wait()
	}
}

func (r *running) children() []Child {
	children := make([]Child, 0, len(r.names))
	for _, name := range r.names {
		children = append(children, Child{Name: name, PID: r.pid(name)})
	}

	return children
}
