package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sallyport/interop/go/measure"
)

// openTime is how long it may take until the server has begun to answer every watch.
const openTime = time.Minute

// drainTime is how long nothing may arrive before events still missing count as lost.
const drainTime = 5 * time.Second

// fanOut is one writer and many watchers of the same namespace.
type fanOut struct {
	options   options
	delivered atomic.Int64
	lastEvent atomic.Int64
	open      atomic.Int64
	readers   sync.WaitGroup
	mu        sync.Mutex
	total     *tally
}

// runWatch opens a watch per worker, writes, and measures the delay from each write's sending to its events' arrival.
func runWatch(ctx context.Context, options options, watchers []*worker) (*result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	target := watchers[0].target
	writer := &worker{target: target, http: &http.Client{Transport: target.newTransport()}}
	write, err := newWrite(ctx, options, writer)
	if err != nil {
		return nil, err
	}
	fan := &fanOut{options: options, total: newTally()}
	late := time.AfterFunc(openTime, func() { cancel(errors.New("not every watch was answered within " + openTime.String())) })
	if err := fan.start(ctx, writer, watchers); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	late.Stop()
	usage, err := measure.StartUsage(options.cpuOf)
	if err != nil {
		return nil, err
	}
	began := sinceStart()
	writes, writing := fan.writeAll(ctx, write)
	expected := int64(writes.latency.Count()) * int64(len(watchers))
	fan.drain(ctx, expected)
	used, err := usage.Stop()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	cancel(nil)
	fan.readers.Wait()
	used.Elapsed = time.Duration(max(fan.lastEvent.Load()-began, int64(writing)))
	for cause, count := range writes.errors {
		fan.total.errors["write "+cause] += count
	}
	r := newResult(options, fan.total, used)
	r.Watch = &watchResult{
		Watchers:        len(watchers),
		Writes:          writes.latency.Count(),
		WritesPerSecond: round(float64(writes.latency.Count()) / writing.Seconds()),
		WriteP50Ms:      round(writes.latency.Milliseconds(0.5)),
		WriteP99Ms:      round(writes.latency.Milliseconds(0.99)),
		MissingEvents:   expected - int64(r.Ops),
	}
	return r, nil
}

func newWrite(ctx context.Context, options options, writer *worker) (operation, error) {
	if options.write == "create" {
		return writer.creating(), nil
	}
	return writer.updating(ctx, "watched-"+runName)
}

// start returns when every watch is open, each from the same resourceVersion on.
func (f *fanOut) start(ctx context.Context, writer *worker, watchers []*worker) error {
	list, err := writer.must(ctx, http.MethodGet, f.options.collection()+"?limit=1", nil, http.StatusOK)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("%s?watch=true&resourceVersion=%s&timeoutSeconds=%d", f.options.collection(),
		stringField(metadataOf(list), "resourceVersion"), int((f.options.duration + time.Hour).Seconds()))
	opening, group := errgroup.Group{}, &f.readers
	opening.SetLimit(32)
	for _, watcher := range watchers {
		opening.Go(func() error {
			response, err := watcher.send(ctx, http.MethodGet, path, nil)
			if err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			if response.StatusCode != http.StatusOK {
				response.Body.Close()
				return fmt.Errorf("watch: answered %s", response.Status)
			}
			f.open.Add(1)
			group.Go(func() { f.read(ctx, response.Body) })
			return nil
		})
	}
	return opening.Wait()
}

// read counts the events of one watch until it ends.
func (f *fanOut) read(ctx context.Context, body io.ReadCloser) {
	defer body.Close()
	seen := newTally()
	lines := bufio.NewReaderSize(body, 2*f.options.size+8192)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if ctx.Err() == nil {
				seen.errors[watchFailure(err)]++
			}
			break
		}
		now := sinceStart()
		sent, err := strconv.ParseInt(string(stringField(line, sentAtKey)), 10, 64)
		if err != nil {
			seen.errors["event without "+sentAtKey]++
			continue
		}
		seen.record(time.Duration(now-sent), http.StatusOK, len(line), nil)
		f.lastEvent.Store(now)
		f.delivered.Add(1)
	}
	f.open.Add(-1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total.add(seen)
}

func watchFailure(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "watch closed"
	case errors.Is(err, bufio.ErrBufferFull):
		return "event too long"
	default:
		return "watch network"
	}
}

// writeAll writes one after the other, at the rate asked for, until the time is up.
func (f *fanOut) writeAll(ctx context.Context, write operation) (*tally, time.Duration) {
	writes := newTally()
	began := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		if f.options.rate > 0 {
			due := began.Add(time.Duration(float64(n) / f.options.rate * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		sent := time.Now()
		if sent.Sub(began) >= f.options.duration {
			break
		}
		status, answer, err := write(ctx)
		writes.record(time.Since(sent), status, len(answer), err)
	}
	return writes, time.Since(began)
}

// drain waits for the events of the last writes.
func (f *fanOut) drain(ctx context.Context, expected int64) {
	before, since := f.delivered.Load(), time.Now()
	for ctx.Err() == nil && f.delivered.Load() < expected && f.open.Load() > 0 {
		time.Sleep(2 * time.Millisecond)
		if now := f.delivered.Load(); now != before {
			before, since = now, time.Now()
		} else if time.Since(since) > drainTime {
			return
		}
	}
}
