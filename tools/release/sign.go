package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// signature is the file with the signature of the checksums.
const signature = checksums + ".sig"

// readKey reads a private key of the curve P-256, as PEM. Without a file there is no key.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // without a key nothing is signed
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key to sign with: %w", err)
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("cannot sign with the key in %s: %w", file, err)
	}

	return key, nil
}

// parseKey reads the formats of openssl and similar tools. Files of openssl ecparam begin with the
// name of the curve, in a separate block.
func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	var parsed any
	var err error
	for parsed == nil && err == nil {
		var block *pem.Block
		block, data = pem.Decode(data)
		switch {
		case block == nil:
			err = errors.New("it has no private key in PEM; make one with openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256")
		case strings.HasPrefix(block.Type, "ENCRYPTED "):
			err = fmt.Errorf("it is encrypted (%s), and no password is asked for here; sign %s with cosign sign-blob afterwards, or give a key in plain PEM", block.Type, checksums)
		case block.Type == "EC PRIVATE KEY":
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		case block.Type == "PRIVATE KEY":
			parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		}
	}
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is not an ECDSA key of the curve P-256, which is what cosign makes")
	}

	return key, nil
}

// sign writes the signature of the checksums as cosign sign-blob does: ECDSA over the SHA-256
// of the file, in ASN.1, as base64.
func sign(dir string, key *ecdsa.PrivateKey) error {
	data, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		return err
	}
	hash := sha256.Sum256(data)
	raw, err := ecdsa.SignASN1(rand.Reader, key, hash[:])
	if err != nil {
		return fmt.Errorf("cannot sign %s: %w", checksums, err)
	}

	return os.WriteFile(filepath.Join(dir, signature), []byte(base64.StdEncoding.EncodeToString(raw)), 0o644) //nolint:gosec // what is released may be read
}
