package registry_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/arbor-control/arbor/test/node/registry"
	"github.com/arbor-control/arbor/tools/release/oci"
)

func open(t *testing.T) *registry.Registry {
	t.Helper()
	var b bytes.Buffer
	i := oci.Image{Name: "localhost/i", Tag: "1", Created: time.Unix(0, 0), Variants: []oci.Variant{{OS: "linux", Arch: "amd64", Files: []oci.File{{Path: "/f", Data: []byte("x")}}}}}
	if _, err := i.Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "i.tar")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(file)
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// A client finds the layer of an image: by tag, then by digests.
func TestPull(t *testing.T) {
	r := open(t)
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	var index, manifest struct {
		Manifests, Layers []struct{ Digest string }
	}
	read(t, s.URL+"/v2/any/name/manifests/1", &index)
	read(t, s.URL+"/v2/any/name/manifests/"+index.Manifests[0].Digest, &manifest)
	data := get(t, s.URL+"/v2/any/name/blobs/"+manifest.Layers[0].Digest)
	if len(data) == 0 || r.Pulls.Load() != 1 || r.Layers.Load() != 1 {
		t.Errorf("the layer has %d bytes, %d pulls, %d layers", len(data), r.Pulls.Load(), r.Layers.Load())
	}
}

func read(t *testing.T, url string, into any) {
	t.Helper()
	if err := json.Unmarshal(get(t, url), into); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return data
}

func TestPassword(t *testing.T) {
	cases := map[string]struct {
		reason, user, password string
		want                   int
	}{
		"Right": {"It is the password.", "u", "p", http.StatusOK},
		"Wrong": {"It is another one.", "u", "q", http.StatusUnauthorized},
		"None":  {"There is none.", "", "", http.StatusUnauthorized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			r.User, r.Password = "u", "p"
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/", nil)
			if tc.user != "" {
				request.SetBasicAuth(tc.user, tc.password)
			}
			w := httptest.NewRecorder()
			r.ServeHTTP(w, request)
			if w.Code != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, w.Code, tc.want)
			}
		})
	}
}
