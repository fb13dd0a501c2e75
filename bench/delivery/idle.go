package delivery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/bench/harness"
)

const (
	// atRest is how long requests are counted while nothing happens.
	atRest = time.Minute
	// settling is how long nothing happens before the manager counts as being at rest.
	settling = 5 * time.Second
)

// idle counts the requests of all clients while nothing changes: only the manager sends
// requests for these objects. Watches do not count, there is one for each kind.
//
// After a delivery the manager reads each object whose controller has written a status, for
// its health. That ends, and is waited for.
func (d *controlPlane) idle(ctx context.Context) ([]harness.Result, error) {
	before := -1.0
	err := harness.Until(ctx, settling, func(ctx context.Context) (bool, error) {
		now, err := d.requests(ctx)
		rests := now == before
		before = now

		return rests, err
	})
	if err != nil {
		return nil, err
	}
	<-time.After(atRest)
	after, err := d.requests(ctx)

	return []harness.Result{{Name: "delivery/idle-requests", Value: (after - before) / delivered / atRest.Minutes()}}, err
}

// requests that the API server has answered about what is delivered, and about
// what it is delivered from.
func (d *controlPlane) requests(ctx context.Context) (float64, error) {
	hc, err := rest.HTTPClientFor(d.up.Config)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.up.Config.Host+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := hc.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	return countRequests(response.Body)
}

func countRequests(metrics io.Reader) (float64, error) {
	about := []string{`resource="configmaps"`, `resource="deployments"`, `resource="resourceslices"`, `resource="compositions"`}
	sum, found := 0.0, false
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		series, ok := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !ok || strings.Contains(series, `verb="WATCH"`) || !slices.ContainsFunc(about, func(label string) bool { return strings.Contains(series, label) }) {
			continue
		}
		n, err := strconv.ParseFloat(series[strings.LastIndexByte(series, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read %q: %w", lines.Text(), err)
		}
		sum, found = sum+n, true
	}
	if !found {
		return 0, errors.New("the API server has no apiserver_request_total of what is delivered")
	}

	return sum, lines.Err()
}
