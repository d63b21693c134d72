package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"

	"golang.org/x/sync/errgroup"
)

const sentAtKey = "sentAt"

// configMap is an object's JSON around the parts that change from request to request.
type configMap struct {
	payload []byte
}

func newConfigMap(size int) configMap {
	// Sixteen letters compress by about half, as configuration does; the fixed seed makes runs comparable.
	random := rand.New(rand.NewPCG(1, 2))
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = "abcdefghijklmnop"[random.IntN(16)]
	}
	return configMap{payload}
}

func (c configMap) render(name, resourceVersion string, sentAt int64) []byte {
	body := make([]byte, 0, len(c.payload)+256)
	body = append(body, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`...)
	body = append(body, name...)
	if resourceVersion != "" {
		body = append(body, `","resourceVersion":"`...)
		body = append(body, resourceVersion...)
	}
	body = append(body, `"},"data":{"`+sentAtKey+`":"`...)
	body = strconv.AppendInt(body, sentAt, 10)
	body = append(body, `","payload":"`...)
	body = append(body, c.payload...)
	return append(body, `"}}`...)
}

// stringField finds the first "key":"value" of compact JSON without decoding it; values here have no escapes.
func stringField(json []byte, key string) []byte {
	start := bytes.Index(json, []byte(`"`+key+`":"`))
	if start < 0 {
		return nil
	}
	rest := json[start+len(key)+4:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil
	}
	return rest[:end]
}

func (o options) collection() string {
	return "/api/v1/namespaces/" + url.PathEscape(o.namespace) + "/configmaps"
}

func (o options) stockName(index int) string {
	return fmt.Sprintf("stock-%d-%d", o.size, index)
}

// prepare makes the namespace and the objects that get and list shall find.
func prepare(ctx context.Context, options options, workers []*worker) error {
	first := workers[0]
	namespace := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, options.namespace)
	if _, err := first.must(ctx, http.MethodPost, "/api/v1/namespaces", namespace, 201, 409); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if options.objects == 0 || (options.op != "get" && options.op != "list") {
		return nil
	}
	// The last object is made last, so that it stands for all of them.
	last := options.objects - 1
	status, _, err := first.do(ctx, http.MethodGet, options.collection()+"/"+options.stockName(last), nil)
	if err != nil || status == http.StatusOK {
		return err
	}
	if err := fill(ctx, options, workers, last); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return first.create(ctx, options.stockName(last))
}

func fill(ctx context.Context, options options, workers []*worker, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, worker := range workers {
		group.Go(func() error {
			for index := worker.index; index < count; index += len(workers) {
				if err := worker.create(ctx, options.stockName(index)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (w *worker) create(ctx context.Context, name string) error {
	options := w.target.options
	body := newConfigMap(options.size).render(name, "", 0)
	_, err := w.must(ctx, http.MethodPost, options.collection(), body, 201, 409)
	return err
}
