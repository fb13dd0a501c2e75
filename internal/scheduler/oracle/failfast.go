package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/internal/scheduler/dump"
)

// failFast ends the reading of a cluster that cannot be read. Informers would
// retry forever, which is right for a scheduler and not for a question.
type failFast struct {
	next http.RoundTripper
	fail context.CancelCauseFunc
	// complete says that everything was read: from here on, who is refused may
	// ask again.
	complete *atomic.Bool
}

// RoundTrip hands the request on.
func (i *failFast) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := i.next.RoundTrip(r)
	k, known := dump.KindAt(r.URL.Path)
	if i.complete.Load() || !known || r.Context().Err() != nil {
		return answer, err
	}
	switch {
	case err != nil:
		i.fail(fmt.Errorf("cannot list %s: no answer from %s://%s: %w", k.GroupResource(), r.URL.Scheme, r.URL.Host, err))
	case r.URL.Query().Get("watch") != "":
		// Who may not watch lists, and is heard then.
	case answer.StatusCode == http.StatusNotFound:
		i.fail(fmt.Errorf("the cluster does not serve %s of %s, which scheduling looks at: it needs a newer Kubernetes", k.Resource, k.GroupVersion()))
	case answer.StatusCode == http.StatusForbidden:
		i.fail(fmt.Errorf("you may not list %s of all namespaces, which scheduling looks at: ask for the right, or for a dump", k.GroupResource()))
	case final(answer.StatusCode):
		i.fail(fmt.Errorf("cannot list %s: %s", k.GroupResource(), reasonOf(answer)))
	}

	return answer, err
}

// final says whether the next answer will be the same.
func final(code int) bool {
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		code != http.StatusTooManyRequests && code != http.StatusGone && code != http.StatusConflict
}

// reasonOf is what the server says. The body can still be read afterwards.
func reasonOf(answer *http.Response) string {
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	var status metav1.Status
	if err == nil && json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}

	return answer.Status
}
