package kube

import (
	"errors"
	"fmt"
	"net/url"
)

// ShortError names the server instead of the whole address of a request that got no answer.
func ShortError(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}

	server, parseErr := url.Parse(u.URL)
	if parseErr != nil {
		return err
	}

	return fmt.Errorf("no answer from %s://%s: %w", server.Scheme, server.Host, u.Err)
}
