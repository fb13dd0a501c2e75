package monitoring_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/controlplane"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	// plainJob is scraped over plain HTTP, as arbor up serves it on a laptop.
	plainJob = "arbor"
	// securedJob is scraped as docs/tasks/monitoring.md describes, with a token.
	securedJob = "arbor-secured"
	// tenantsJob is a manager that delivers as ServiceAccounts.
	tenantsJob = "arbor-tenants"
	// gangsJob is the scheduler, which serves over HTTPS only.
	gangsJob = "arbor-gangs"
	// leaderlessJob is a manager that waits for its lease.
	leaderlessJob = "arbor-leaderless"
	// restartingJob is a process that starts again and again.
	restartingJob = "arbor-restarting"
)

// A monitor is a real Prometheus.
type monitor struct {
	dir   string
	url   string
	began time.Time
}

// startPrometheus starts Prometheus with Arbor's rules, and no targets.
func startPrometheus(t *testing.T) *monitor {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		path, err = exec.LookPath(root + "/bin/prometheus")
	}
	if err != nil {
		t.Fatal("cannot find prometheus, which proves rules and dashboards: run make setup")
	}
	ports, err := controlplane.FreePorts(1)
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	p := &monitor{dir: t.TempDir(), url: "http://" + address, began: time.Now()}
	for _, job := range []string{plainJob, securedJob, tenantsJob, gangsJob, leaderlessJob, restartingJob} {
		p.scrape(t, job)
	}
	p.rules(t)
	found := func(job string) []any {
		return []any{map[string]any{"files": []string{p.targets(job)}, "refresh_interval": scrapes.String()}}
	}
	write(t, p.file("prometheus.yaml"), map[string]any{
		"global":     map[string]any{"scrape_interval": scrapes.String(), "scrape_timeout": scrapes.String(), "evaluation_interval": scrapes.String()},
		"rule_files": []string{p.file("rules/*.yaml")},
		"scrape_configs": []any{
			map[string]any{"job_name": plainJob, "file_sd_configs": found(plainJob)},
			map[string]any{"job_name": leaderlessJob, "file_sd_configs": found(leaderlessJob)},
			map[string]any{"job_name": restartingJob, "file_sd_configs": found(restartingJob)},
			map[string]any{"job_name": tenantsJob, "file_sd_configs": found(tenantsJob)},
			map[string]any{
				"job_name": securedJob, "file_sd_configs": found(securedJob), "scheme": "https",
				"tls_config": map[string]any{"insecure_skip_verify": true}, "authorization": map[string]any{"credentials_file": p.token()},
			},
			map[string]any{"job_name": gangsJob, "file_sd_configs": found(gangsJob), "scheme": "https", "tls_config": map[string]any{"insecure_skip_verify": true}},
		},
	})
	process, err := cluster.StartProcess(path, "--config.file="+p.file("prometheus.yaml"), "--storage.tsdb.path="+p.file("data"), "--web.listen-address="+address)
	must(t, err)
	t.Cleanup(func() {
		process.Stop()
		if t.Failed() {
			t.Logf("--- prometheus\n%s", process.Output())
		}
	})
	cluster.Eventually(t, "Prometheus is ready", func() error {
		select {
		case <-process.Done():
			t.Fatalf("Prometheus has ended:\n%s", process.Output())
		default:
		}

		return p.get("/-/ready", nil, nil)
	})

	return p
}

func (p *monitor) file(name string) string { return filepath.Join(p.dir, name) }

// targets is the file with the addresses of a job.
func (p *monitor) targets(job string) string { return p.file("targets-" + job + ".json") }

// token is the file that has the one for the secured endpoint.
func (p *monitor) token() string { return p.file("token") }

// rules writes those of monitoring, with durations divided.
func (p *monitor) rules(t *testing.T) {
	t.Helper()
	must(t, os.Mkdir(p.file("rules"), 0o755))
	for _, name := range files(t, "rules/*.yaml") {
		data, err := os.ReadFile(name)
		must(t, err)
		var f ruleFile
		must(t, yaml.UnmarshalStrict(data, &f)) // what is not known could not be divided
		for _, g := range f.Groups {
			for i := range g.Rules {
				r, err := scaled(g.Rules[i])
				must(t, err)
				g.Rules[i] = r
			}
		}
		write(t, p.file("rules/"+filepath.Base(name)), f)
	}
}

// scrape sets where a job is served from now on. An earlier scrape sees only whole files.
func (p *monitor) scrape(t *testing.T, job string, addresses ...string) {
	t.Helper()
	data, err := json.Marshal([]any{map[string]any{"targets": append([]string{}, addresses...)}})
	must(t, err)
	must(t, os.WriteFile(p.targets(job)+".new", data, 0o600))
	must(t, os.Rename(p.targets(job)+".new", p.targets(job)))
}

// get asks for something, and decodes the answer's data.
func (p *monitor) get(path string, query url.Values, into any) error {
	response, err := http.Get(p.url + path + "?" + query.Encode()) //nolint:noctx // the transport's own limits are enough here
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if into == nil {
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}

		return nil
	}
	answer := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", response.Status, answer.Error)
	}

	return nil
}

// An alert is one that fires, or is about to.
type alert struct {
	Labels map[string]string `json:"labels"`
	State  string            `json:"state"`
	Value  string            `json:"value"`
}

// firing returns the alerts that fire.
func (p *monitor) firing() ([]alert, error) {
	var data struct {
		Alerts []alert `json:"alerts"`
	}
	if err := p.get("/api/v1/alerts", nil, &data); err != nil {
		return nil, err
	}
	var all []alert
	for _, a := range data.Alerts {
		if a.State == "firing" {
			all = append(all, a)
		}
	}

	return all, nil
}

// target returns how the last scrape of a job went.
func (p *monitor) target(job string) (health, lastError string, err error) {
	var data struct {
		ActiveTargets []struct {
			Labels    map[string]string `json:"labels"`
			Health    string            `json:"health"`
			LastError string            `json:"lastError"`
		} `json:"activeTargets"`
	}
	if err := p.get("/api/v1/targets", nil, &data); err != nil {
		return "", "", err
	}
	for _, t := range data.ActiveTargets {
		if t.Labels["job"] == job {
			return t.Health, t.LastError, nil
		}
	}

	return "", "", fmt.Errorf("there is no target of job %s", job)
}

// samples counts what an expression returned since the beginning, as a panel asks.
// NaN is drawn by nobody and is none.
func (p *monitor) samples(expr string) (int, error) {
	var data struct {
		Result []struct {
			Values [][2]any `json:"values"`
		} `json:"result"`
	}
	at := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	err := p.get("/api/v1/query_range", url.Values{"query": {expr}, "start": {at(p.began)}, "end": {at(time.Now())}, "step": {"1"}}, &data)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, series := range data.Result {
		for _, v := range series.Values {
			text, _ := v[1].(string)
			if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
				n++
			}
		}
	}

	return n, nil
}
