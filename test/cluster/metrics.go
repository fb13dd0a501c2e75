package cluster

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Sum adds up the series of a running manager that a selector such as
// name{label="value"} chooses.
func (m *Manager) Sum(t testing.TB, selector string) float64 {
	t.Helper()
	sum, err := m.Value(selector)
	if err != nil {
		t.Fatal(err)
	}

	return sum
}

// Value is Sum for callers without a test.
func (m *Manager) Value(selector string) (float64, error) {
	all, err := m.Series(selector)

	return total(all), err
}

func total(all map[string]float64) float64 {
	sum := 0.0
	for _, n := range all {
		sum += n
	}

	return sum
}

// Series are those that a selector chooses, by their labels as they are served. A
// manager can be ready some moments before it serves metrics.
func (m *Manager) Series(selector string) (map[string]float64, error) {
	return series(m.Process, http.DefaultClient, "http://"+m.Metrics+"/metrics", selector)
}

func series(p *Process, c *http.Client, url, selector string) (map[string]float64, error) {
	var response *http.Response
	err := poll("metrics are served", p.Done(), func() (err error) {
		response, err = c.Get(url) //nolint:noctx,bodyclose // the transport's own limits are enough here, and it is closed below

		return err
	})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	name, label, _ := strings.Cut(strings.TrimSuffix(selector, "}"), "{")
	found := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		have, labels, _ := strings.Cut(series, "{")
		if have != name || !strings.Contains(labels, label) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", lines.Text(), err)
		}
		found[strings.TrimSuffix(labels, "}")] = n
	}

	return found, nil
}
