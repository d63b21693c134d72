// Command workload runs as a Pod and says, in one JSON line, who it is: by client-go with its in-cluster
// configuration, and by its own token, which go-oidc verifies as it would that of anybody else.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

type answer struct {
	Host     string                    `json:"host"`
	User     authenticationv1.UserInfo `json:"user"`
	Issuer   string                    `json:"issuer"`
	Subject  string                    `json:"subject"`
	Audience []string                  `json:"audience"`
	Claims   json.RawMessage           `json:"claims"`
	// Refused is what go-oidc says of the same token for another audience.
	Refused string `json:"refused"`
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	said, err := look(ctx)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(said)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

func look(ctx context.Context) (*answer, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("in-cluster configuration: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask who I am: %w", err)
	}
	said := &answer{Host: config.Host, User: review.Status.UserInfo}
	return said, said.verify(ctx, config)
}

// verify discovers the issuer with the Pod's own rights and judges the Pod's token by its documents.
func (said *answer) verify(ctx context.Context, config *rest.Config) error {
	bytes, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	token := string(bytes)
	issuer, audience, err := unverified(token)
	if err != nil {
		return err
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx = oidc.ClientContext(ctx, transport)
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return fmt.Errorf("discover %s: %w", issuer, err)
	}
	verified, err := provider.Verifier(&oidc.Config{ClientID: audience}).Verify(ctx, token)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	said.Issuer, said.Subject, said.Audience = verified.Issuer, verified.Subject, verified.Audience
	_, err = provider.Verifier(&oidc.Config{ClientID: "somebody else"}).Verify(ctx, token)
	if err == nil {
		return errors.New("a token for another audience was believed")
	}
	said.Refused = err.Error()
	claims := map[string]json.RawMessage{}
	if err := verified.Claims(&claims); err != nil {
		return err
	}
	said.Claims = claims["kubernetes.io"]
	return nil
}

// unverified reads where a token says it is from, so that its issuer can be asked.
func unverified(token string) (issuer, audience string, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", errors.New("not a compact JWS")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", "", err
	}
	var claims struct {
		Issuer   string   `json:"iss"`
		Audience []string `json:"aud"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", "", err
	}
	if len(claims.Audience) == 0 {
		return "", "", errors.New("a token without an audience")
	}
	return claims.Issuer, claims.Audience[0], nil
}
