package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// operation sends a worker's next request.
type operation func(ctx context.Context) (status int, answer []byte, err error)

// workerStride, a prime above any sensible number of workers, keeps their payloads apart.
const workerStride = 4099

// runName keeps the names of one run apart from those of an earlier one.
var runName = strconv.FormatInt(time.Now().UnixNano(), 36)

func (w *worker) newOperation(ctx context.Context) (operation, error) {
	switch w.target.options.op {
	case "get":
		return w.getting(), nil
	case "list":
		return w.listing(), nil
	case "create":
		return w.creating(), nil
	case "request":
		return w.requesting(), nil
	default:
		return w.updating(ctx, fmt.Sprintf("update-%s-%d", runName, w.index))
	}
}

func (w *worker) getting() operation {
	options := w.target.options
	query := ""
	if options.resourceVersion != "" {
		query = "?resourceVersion=" + url.QueryEscape(options.resourceVersion)
	}
	next := w.index
	return func(ctx context.Context) (int, []byte, error) {
		path := options.collection() + "/" + options.stockName(next%options.objects) + query
		next++
		return w.do(ctx, http.MethodGet, path, nil)
	}
}

// listing walks through the pages, and begins anew after the last one.
func (w *worker) listing() operation {
	options := w.target.options
	token := ""
	return func(ctx context.Context) (int, []byte, error) {
		query := url.Values{}
		if options.limit > 0 {
			query.Set("limit", strconv.Itoa(options.limit))
		}
		if token != "" {
			query.Set("continue", token)
		} else if options.resourceVersion != "" {
			query.Set("resourceVersion", options.resourceVersion)
		}
		status, answer, err := w.do(ctx, http.MethodGet, options.collection()+"?"+query.Encode(), nil)
		token = ""
		if options.limit > 0 && status == http.StatusOK {
			token = string(stringField(metadataOf(answer), "continue"))
		}
		return status, answer, err
	}
}

// metadataOf unpacks the beginning only: the metadata come before an object's data and a list's items.
func metadataOf(answer []byte) []byte {
	var plain io.Reader = bytes.NewReader(answer)
	if bytes.HasPrefix(answer, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(plain)
		if err != nil {
			return nil
		}
		plain = unpacked
	}
	head := make([]byte, 2048)
	n, _ := io.ReadFull(plain, head)
	head, _, _ = bytes.Cut(head[:n], []byte(`"items":`))
	return head
}

func (w *worker) creating() operation {
	options := w.target.options
	object := configMap{options.size}
	next := 0
	return func(ctx context.Context) (int, []byte, error) {
		name := fmt.Sprintf("create-%s-%d-%d", runName, w.index, next)
		next++
		return w.do(ctx, http.MethodPost, options.collection(), object.render(name, "", next*workerStride+w.index))
	}
}

// requesting asks for one path again and again; what it posts is new each time if the body has a place for it.
func (w *worker) requesting() operation {
	options := w.target.options
	before, after, isNumbered := bytes.Cut(options.body, []byte("{n}"))
	if !isNumbered {
		method := http.MethodGet
		if options.body != nil {
			method = http.MethodPost
		}
		return func(ctx context.Context) (int, []byte, error) {
			return w.do(ctx, method, options.path, options.body)
		}
	}
	next := 0
	return func(ctx context.Context) (int, []byte, error) {
		next++
		number := fmt.Sprintf("%s-%d-%d", runName, w.index, next)
		return w.do(ctx, http.MethodPost, options.path, slices.Concat(before, []byte(number), after))
	}
}

// updating replaces one object again and again, each time on top of the version it saw last.
func (w *worker) updating(ctx context.Context, name string) (operation, error) {
	options := w.target.options
	object := configMap{options.size}
	answer, err := w.must(ctx, http.MethodPost, options.collection(), object.render(name, "", w.index), 201)
	if err != nil {
		return nil, err
	}
	version := string(stringField(metadataOf(answer), "resourceVersion"))
	path := options.collection() + "/" + name
	next := 0
	return func(ctx context.Context) (int, []byte, error) {
		next++
		status, answer, err := w.do(ctx, http.MethodPut, path, object.render(name, version, next*workerStride+w.index))
		if err == nil && status == http.StatusOK {
			version = string(stringField(metadataOf(answer), "resourceVersion"))
		}
		return status, answer, err
	}, nil
}
