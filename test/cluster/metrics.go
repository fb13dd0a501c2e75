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

// Value is Sum for whoever is not a test.
func (m *Manager) Value(selector string) (float64, error) {
	all, err := m.Series(selector)
	sum := 0.0
	for _, n := range all {
		sum += n
	}

	return sum, err
}

// Series are those that a selector chooses, by their labels as they are served. A
// manager can be ready some moments before it serves metrics.
func (m *Manager) Series(selector string) (map[string]float64, error) {
	var response *http.Response
	err := poll("metrics are served", m.Done(), func() (err error) {
		response, err = http.Get("http://" + m.Metrics + "/metrics") //nolint:noctx,bodyclose // the transport's own limits are enough here, and it is closed below

		return err
	})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
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
