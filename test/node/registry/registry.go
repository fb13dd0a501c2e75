// Package registry is a container registry for tests, with one image, which every name
// leads to. It can be slow, and it can ask for a password.
package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

// A Registry serves an archive in the layout of the Open Container Initiative.
type Registry struct {
	// User and Password are those that every request needs, if they are not empty.
	User, Password string
	// Delay is how long the first answer with a layer takes.
	Delay time.Duration

	// Pulls is how many times a tag was resolved, Layers how many answers had a layer: a
	// node does not fetch a layer that it has.
	Pulls, Layers atomic.Int64

	top   descriptor
	blobs map[string][]byte
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
}

// Open reads the archive of an image.
func Open(archive string) (*Registry, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := &Registry{blobs: map[string][]byte{}}
	var index struct {
		Manifests []descriptor `json:"manifests"`
	}
	for t := tar.NewReader(file); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read image %s: %w", archive, err)
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return nil, fmt.Errorf("cannot read image %s: %w", archive, err)
		}
		if h.Name == "index.json" {
			if err := json.Unmarshal(data, &index); err != nil {
				return nil, fmt.Errorf("cannot read image %s: %w", archive, err)
			}
		}
		if digest, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok && digest != "" {
			r.blobs["sha256:"+digest] = data
		}
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("image %s has %d manifests, want 1", archive, len(index.Manifests))
	}
	r.top = index.Manifests[0]

	return r, nil
}

// ServeHTTP answers what clients of registries ask to pull an image.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if !r.allows(request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)

		return
	}
	reference, kind := path.Base(request.URL.Path), path.Base(path.Dir(request.URL.Path))
	if kind == "manifests" && !strings.HasPrefix(reference, "sha256:") {
		reference = r.top.Digest
		r.Pulls.Add(1)
	}
	data, ok := r.blobs[reference]
	switch {
	case strings.TrimSuffix(request.URL.Path, "/") == "/v2":
		return
	case !ok:
		http.Error(w, `{"errors":[{"code":"BLOB_UNKNOWN"}]}`, http.StatusNotFound)

		return
	}
	if isLayer(data) && request.Method == http.MethodGet && r.Layers.Add(1) == 1 {
		r.delay(request.Context())
	}
	w.Header().Set("Content-Type", mediaType(data))
	w.Header().Set("Docker-Content-Digest", reference)
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(data))
}

// allows reports whether a request has the password.
func (r *Registry) allows(request *http.Request) bool {
	user, password, _ := request.BasicAuth()

	return user == r.User && password == r.Password
}

// delay waits for as long as the first layer takes, or until the client is gone.
func (r *Registry) delay(ctx context.Context) {
	select {
	case <-time.After(r.Delay):
	case <-ctx.Done():
	}
}

// isLayer reports whether data is a layer, which is compressed. All others are JSON.
func isLayer(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// mediaType is what a document says of itself.
func mediaType(data []byte) string {
	var d descriptor
	if err := json.Unmarshal(data, &d); err == nil && d.MediaType != "" {
		return d.MediaType
	}

	return "application/octet-stream"
}
