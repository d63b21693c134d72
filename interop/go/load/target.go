package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// target is the server of the kubeconfig and how to reach it.
type target struct {
	options options
	url     string
	header  http.Header
	tls     *tls.Config
}

// worker has at most one request in flight; workers of one connection share its http.Client.
type worker struct {
	index  int
	target *target
	http   *http.Client
	answer bytes.Buffer
}

func openTarget(options options) (*target, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: options.kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: options.context},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	header := http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"sallyport-load"}}
	if options.op == "request" {
		header.Set("Accept", "*/*") // kube-apiserver says 406 to whoever wants JSON of its key set
	}
	if options.gzip {
		header.Set("Accept-Encoding", "gzip")
	}
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("read token: %w", err)
		}
		token = strings.TrimSpace(string(content))
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return &target{options: options, url: strings.TrimSuffix(config.Host, "/"), header: header, tls: tlsConfig}, nil
}

// connect opens every connection, so that no handshake is measured.
func (t *target) connect(ctx context.Context) ([]*worker, error) {
	var workers []*worker
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for range t.options.connections {
		client := &http.Client{Transport: t.newTransport()}
		first := len(workers)
		for range t.options.streams {
			workers = append(workers, &worker{index: len(workers), target: t, http: client})
		}
		opener := workers[first]
		group.Go(func() error { return opener.open(ctx) })
	}
	return workers, group.Wait()
}

func (t *target) newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!t.options.http2)
	protocols.SetHTTP2(t.options.http2)
	config := t.tls.Clone()
	if config != nil {
		config.NextProtos = nil
	}
	return &http.Transport{
		TLSClientConfig:    config,
		Protocols:          protocols,
		HTTP2:              &http.HTTP2Config{StrictMaxConcurrentRequests: true},
		MaxConnsPerHost:    1,
		DisableCompression: true,
	}
}

func (w *worker) open(ctx context.Context) error {
	path := "/version"
	if w.target.options.op == "request" && w.target.options.body == nil {
		path = w.target.options.path // not every server of documents has a version
	}
	response, err := w.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("connect: GET %s answered %s", path, response.Status)
	}
	if w.target.options.http2 != (response.ProtoMajor == 2) {
		return fmt.Errorf("connect: the server speaks %s", response.Proto)
	}
	return nil
}

func (w *worker) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, w.target.url+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header = w.target.header
	if body != nil {
		request.Header = request.Header.Clone()
		request.Header.Set("Content-Type", "application/json")
	}
	return w.http.Do(request)
}

// do sends one request and reads the whole answer, which stays valid until the next do.
func (w *worker) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	response, err := w.send(ctx, method, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	w.answer.Reset()
	if _, err := w.answer.ReadFrom(response.Body); err != nil {
		return 0, nil, err
	}
	return response.StatusCode, w.answer.Bytes(), nil
}

// must is do for requests that the measurement depends on.
func (w *worker) must(ctx context.Context, method, path string, body []byte, accepted ...int) ([]byte, error) {
	status, answer, err := w.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	for _, code := range accepted {
		if status == code {
			return answer, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s %s answered %d", method, path, status), errors.New(string(answer)))
}
