package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
)

const sentAtKey = "sentAt"

// configMap renders objects of one size, each with a payload of its own.
type configMap struct {
	size int
}

// payloads is long enough that no text repeats within gzip's window, which would flatter compressed lists.
// Sixteen letters compress by half; the fixed seed makes runs comparable.
var payloads = sync.OnceValue(func() []byte {
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, 8<<20)
	for i := range letters {
		letters[i] = "abcdefghijklmnop"[random.IntN(16)]
	}
	return letters
})

func (c configMap) payload(number int) []byte {
	pool := payloads()
	offset := number * c.size % (len(pool) - c.size)
	return pool[offset : offset+c.size]
}

// render is the object's JSON; number chooses its payload.
func (c configMap) render(name, resourceVersion string, number int) []byte {
	body := make([]byte, 0, c.size+256)
	body = append(body, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`...)
	body = append(body, name...)
	if resourceVersion != "" {
		body = append(body, `","resourceVersion":"`...)
		body = append(body, resourceVersion...)
	}
	body = append(body, `"},"data":{"`+sentAtKey+`":"`...)
	body = strconv.AppendInt(body, sinceStart(), 10)
	body = append(body, `","payload":"`...)
	body = append(body, c.payload(number)...)
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
	if options.op == "request" {
		return nil
	}
	payloads()
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
	if err := fill(ctx, workers, last); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return first.stock(ctx, last)
}

func fill(ctx context.Context, workers []*worker, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, worker := range workers {
		group.Go(func() error {
			for index := worker.index; index < count; index += len(workers) {
				if err := worker.stock(ctx, index); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (w *worker) stock(ctx context.Context, index int) error {
	options := w.target.options
	body := configMap{options.size}.render(options.stockName(index), "", index)
	_, err := w.must(ctx, http.MethodPost, options.collection(), body, 201, 409)
	return err
}
