// Command measure signs tokens with go-jose or verifies them with go-oidc for some seconds, on one core.
// Its order is JSON on stdin, its result a line of JSON.
package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

type order struct {
	Op        string          `json:"op"`
	Seconds   float64         `json:"seconds"`
	Issuer    string          `json:"issuer"`
	Audience  string          `json:"audience"`
	Algorithm string          `json:"alg"`
	KeyID     string          `json:"kid"`
	Private   string          `json:"privatePem"`
	Claims    map[string]any  `json:"claims"`
	Keys      json.RawMessage `json:"jwks"`
	Tokens    []string        `json:"tokens"`
}

type result struct {
	PerSecond    float64 `json:"perSecond"`
	PerCPUSecond float64 `json:"perCpuSecond"`
}

func main() {
	runtime.GOMAXPROCS(1)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run() error {
	var order order
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		return err
	}
	operation, err := operationOf(order)
	if err != nil {
		return err
	}
	if _, err := repeat(operation, time.Second/2); err != nil {
		return err
	}
	measured, err := repeat(operation, time.Duration(order.Seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(measured)
}

func operationOf(order order) (func(int) error, error) {
	if order.Op == "sign" {
		return signing(order)
	}
	return verifying(order), nil
}

func signing(order order) (func(int) error, error) {
	block, _ := pem.Decode([]byte(order.Private))
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key := jose.JSONWebKey{Algorithm: order.Algorithm, Key: private.(crypto.Signer), KeyID: order.KeyID, Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(order.Algorithm), Key: key}, nil)
	if err != nil {
		return nil, err
	}
	return func(int) error {
		_, err := jwt.Signed(signer).Claims(order.Claims).Serialize()
		return err
	}, nil
}

// keysInHand answers every request with the key set, so that the library's own remote key set is what is measured.
type keysInHand string

func (k keysInHand) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(k)))}, nil
}

func verifying(order order) func(int) error {
	ctx := oidc.ClientContext(context.Background(), &http.Client{Transport: keysInHand(order.Keys)})
	keys := oidc.NewRemoteKeySet(ctx, order.Issuer+"/openid/v1/jwks")
	config := &oidc.Config{ClientID: order.Audience, SupportedSigningAlgs: []string{order.Algorithm}}
	verifier := oidc.NewVerifier(order.Issuer, keys, config)
	return func(number int) error {
		_, err := verifier.Verify(ctx, order.Tokens[number%len(order.Tokens)])
		return err
	}
}

func repeat(operation func(int) error, duration time.Duration) (result, error) {
	began, cpu, count := time.Now(), cpuTime(), 0
	for ; time.Since(began) < duration; count++ {
		if err := operation(count); err != nil {
			return result{}, err
		}
	}
	done := float64(count)
	return result{done / time.Since(began).Seconds(), done / (cpuTime() - cpu).Seconds()}, nil
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
