package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newKey makes a key, and a file with it in a form.
func newKey(t *testing.T, form string) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	var data []byte
	if form == "EC PRIVATE KEY" {
		der, err := x509.MarshalECPrivateKey(key)
		must(t, err)
		// openssl ecparam -genkey writes the curve first.
		data = append(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}}), pem.EncodeToMemory(&pem.Block{Type: form, Bytes: der})...)
	} else {
		data = pkcs8(t, key)
	}

	return key, keyFile(t, data)
}

func pkcs8(t *testing.T, key crypto.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)

	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func keyFile(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(file, data, 0o600))

	return file
}

// checkSignature checks the checksums of a folder as cosign verify-blob does, and with openssl if
// this machine has it.
func checkSignature(t *testing.T, dir string, key *ecdsa.PrivateKey) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS.sig"))
	must(t, err)
	raw, err := base64.StdEncoding.DecodeString(string(text))
	must(t, err)
	hash := sha256.Sum256(data)
	if !ecdsa.VerifyASN1(&key.PublicKey, hash[:], raw) {
		t.Error("the signature is not that of the checksums")
	}
	hash[0] ^= 1
	if ecdsa.VerifyASN1(&key.PublicKey, hash[:], raw) {
		t.Error("the signature holds for other checksums, too")
	}

	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Log("openssl is not installed: the signature was checked with Go only")

		return
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(t, err)
	public, binary := keyFile(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), keyFile(t, raw)
	out, err := exec.CommandContext(t.Context(), openssl, "dgst", "-sha256", "-verify", public, "-signature", binary, filepath.Join(dir, "SHA256SUMS")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Verified OK") {
		t.Errorf("openssl: %v\n%s", err, out)
	}
}

func TestSign(t *testing.T) {
	for _, form := range []string{"PRIVATE KEY", "EC PRIVATE KEY"} {
		t.Run(form, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, checksums), []byte("00  arbor\n"), 0o600))
			want, file := newKey(t, form)
			key, err := readKey(file)
			must(t, err)
			must(t, sign(dir, key))
			checkSignature(t, dir, want)
		})
	}
}

// A key that cannot be used is an error before anything is built: the root does not even exist.
func TestBadKeys(t *testing.T) {
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	cases := map[string]struct {
		reason string
		file   string
		want   string
	}{
		"Missing":   {"A typo in the name.", "nowhere.pem", "cannot read the key to sign with: open nowhere.pem"},
		"Text":      {"It is no key at all.", keyFile(t, []byte("secret")), "it has no private key in PEM; make one with openssl genpkey"},
		"Public":    {"It is the other half.", keyFile(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte{1}})), "it has no private key in PEM"},
		"Encrypted": {"cosign encrypts what it makes.", keyFile(t, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: []byte{1}})), "it is encrypted (ENCRYPTED SIGSTORE PRIVATE KEY)"},
		"Curve":     {"The hash would be another one.", keyFile(t, pkcs8(t, large)), "it is not an ECDSA key of the curve P-256"},
		"Kind":      {"The signature would be another one.", keyFile(t, pkcs8(t, other)), "it is not an ECDSA key of the curve P-256"},
		"Broken":    {"A file that was cut.", keyFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})), "asn1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SOURCE_DATE_EPOCH", "1")
			err := run(t.Context(), []string{"-root", "nowhere", "-out", filepath.Join(t.TempDir(), "dist"), "-sign-key", tc.file, "release"}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

// A release without a key reports that it is not signed.
func TestUnsigned(t *testing.T) {
	var said bytes.Buffer
	dir := filepath.Join(t.TempDir(), "dist")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	must(t, run(t.Context(), []string{"-root", tiny(t), "-out", dir, "-platforms", "linux/amd64", "release"}, &said))
	if !strings.Contains(said.String(), "SHA256SUMS is not signed: name a key with COSIGN_KEY=FILE\n") {
		t.Errorf("it says %q", &said)
	}
	if _, err := os.Stat(filepath.Join(dir, signature)); !os.IsNotExist(err) {
		t.Errorf("there is a signature without a key: %v", err)
	}
}
