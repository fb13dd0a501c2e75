package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
)

// serve answers requests for PodGroups, and has no other API; answer gets the
// continue token.
func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, token string)) string {
	t.Helper()

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/plexaubnet.io/v1alpha1/"):
			// As to somebody who has no rights there: whether there is such an
			// API is another question.
			clitest.Refuse(w, http.StatusForbidden, "Forbidden")

			return
		case r.URL.Path == "/apis/scheduling.run.ai/v2alpha2":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"scheduling.run.ai/v2alpha2","resources":[]}`)

			return
		case !strings.HasSuffix(r.URL.Path, "/podgroups"):
			clitest.Refuse(w, http.StatusNotFound, "NotFound")

			return
		}

		answer(w, r, r.URL.Query().Get("continue"))
	}))
	t.Cleanup(s.Close)

	return s.URL
}

func page(w http.ResponseWriter, next string, objects ...map[string]any) {
	err := json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroupList",
		"metadata": map[string]any{"continue": next, "resourceVersion": "1"}, "items": objects,
	})
	if err != nil {
		panic(err) // the tests' own objects can be encoded
	}
}

const noPoolAPI = "SubnetPool skipped: not installed in this cluster\nWorkload skipped: not installed in this cluster\n"

func TestCluster(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer func(w http.ResponseWriter, r *http.Request, token string)
		args   []string
		want   clitest.Result
	}{
		"Pages": {
			reason: "all pages are read, 500 objects at a time",
			answer: func(w http.ResponseWriter, r *http.Request, token string) {
				switch {
				case r.URL.Path != "/apis/scheduling.run.ai/v2alpha2/podgroups" || r.URL.Query().Get("limit") != "500":
					clitest.Refuse(w, http.StatusBadRequest, r.URL.String())
				case token == "":
					page(w, "next", clitest.PodGroup("a", "one", "x"))
				default:
					page(w, "", clitest.PodGroup("a", "two", "y"))
				}
			},
			want: clitest.Result{ErrOut: noPoolAPI + "no problems in 2 PodGroups\n"},
		},
		"Expired": {
			reason: "pages that expire are asked for again, all at once, and nothing counts twice",
			answer: func(w http.ResponseWriter, r *http.Request, token string) {
				switch {
				case token != "":
					clitest.Refuse(w, http.StatusGone, "Expired")
				case r.URL.Query().Get("limit") == "500":
					page(w, "next", clitest.PodGroup("a", "one", "x"))
				default:
					page(w, "", clitest.PodGroup("a", "one", "x"), clitest.PodGroup("a", "two", "y"))
				}
			},
			want: clitest.Result{ErrOut: noPoolAPI + "no problems in 2 PodGroups\n"},
		},
		"Namespace": {
			reason: "a namespace is asked for by its path",
			answer: func(w http.ResponseWriter, r *http.Request, _ string) {
				if r.URL.Path != "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups" {
					clitest.Refuse(w, http.StatusBadRequest, r.URL.Path)

					return
				}

				page(w, "")
			},
			args: []string{"-n", "ns"},
			want: clitest.Result{ErrOut: noPoolAPI + "no problems in 0 PodGroups\n"},
		},
		"NotInstalled": {
			reason: "an unknown path is an API that is not there",
			answer: func(w http.ResponseWriter, _ *http.Request, _ string) {
				clitest.Refuse(w, http.StatusNotFound, "NotFound")
			},
			want: clitest.Result{ErrOut: "PodGroup skipped: not installed in this cluster\n" + noPoolAPI + "nothing to audit\n"},
		},
		"Forbidden": {
			reason: "the server's refusal is passed on",
			answer: func(w http.ResponseWriter, _ *http.Request, _ string) {
				clitest.Refuse(w, http.StatusForbidden, "Forbidden")
			},
			want: clitest.Result{Code: command.ExitBlind, Err: "cannot list podgroups.scheduling.run.ai: because"},
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")

			args := append([]string{"--server", serve(t, tc.answer)}, tc.args...)
			if diff := cmp.Diff(tc.want, clitest.Run(t, auditCommand, "", args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClusterByName(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")

	url := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if r.URL.Query().Get("fieldSelector") != "metadata.name=one" {
			clitest.Refuse(w, http.StatusBadRequest, r.URL.String())

			return
		}

		page(w, "", clitest.PodGroup("default", "one"))
	})

	if got := clitest.Run(t, groupsCommand, "", "one", "--server", url); got.Out != "default/one  queue q, min 2 pods\n" {
		t.Errorf("got %+v, want the one group", got)
	}
}

func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")

	closed := httptest.NewServer(nil)
	url := closed.URL
	closed.Close()

	got := clitest.Run(t, auditCommand, "", "--server", url)
	if got.Code != command.ExitBlind || !strings.HasPrefix(got.Err, "cannot list podgroups.scheduling.run.ai: no answer from "+url+": ") {
		t.Errorf("got %+v, want an error that names the server", got)
	}

	for _, args := range [][]string{{"--kubeconfig", "/nonexistent"}, {"--server", "://"}} {
		if got := clitest.Run(t, auditCommand, "", args...); got.Code != command.ExitBlind || !strings.HasPrefix(got.Err, "cannot ") {
			t.Errorf("%v: got %+v, want an error", args, got)
		}
	}
}
