// Command verify reads a token per line and says of each, in a line of JSON, whether go-oidc believes it.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
)

type answer struct {
	OK      bool   `json:"ok"`
	Subject string `json:"sub,omitempty"`
	Why     string `json:"why,omitempty"`
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go-oidc ISSUER AUDIENCE CA_FILE")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func serve(issuer, audience, ca string) error {
	client, err := clientTrusting(ca)
	if err != nil {
		return err
	}
	ctx := oidc.ClientContext(context.Background(), client)
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return err
	}
	verifier := provider.VerifierContext(ctx, &oidc.Config{ClientID: audience})
	out := json.NewEncoder(os.Stdout)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := out.Encode(judge(ctx, verifier, lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

func judge(ctx context.Context, verifier *oidc.IDTokenVerifier, token string) answer {
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return answer{Why: err.Error()}
	}
	return answer{OK: true, Subject: verified.Subject}
}

func clientTrusting(ca string) (*http.Client, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}, nil
}
