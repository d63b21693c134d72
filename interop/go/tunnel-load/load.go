package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sallyport/interop/go/measure"
)

type options struct {
	front       front
	mode        string
	target      string
	connections int
	bytes       int64
	count       int64
	size        int
	bulk        int
	bulkMode    string
	stopped     int
	hashed      bool
	firstByte   bool
	cancelAfter time.Duration
	cpuOf       []int
}

func parseLoad(mode string, args []string) (*options, error) {
	o := &options{mode: mode}
	if !slices.Contains([]string{"echo", "upload", "download", "dials", "cancel"}, mode) {
		return nil, fmt.Errorf("there is no mode %q", mode)
	}
	var cpuOf string
	set := flag.NewFlagSet(mode, flag.ContinueOnError)
	o.front.flags(set)
	set.StringVar(&o.target, "target", "", "host:port to dial through the tunnel, a `tunnel-load target`")
	set.IntVar(&o.connections, "connections", 1, "connections at the same time")
	set.Int64Var(&o.bytes, "bytes", 100<<20, "upload, download: bytes of all connections together")
	set.Int64Var(&o.count, "count", 1000, "echo: round trips of each connection; dials, cancel: dials in all")
	set.IntVar(&o.size, "size", 1024, "echo: bytes of a round trip")
	set.IntVar(&o.bulk, "bulk", 0, "echo: connections beside it that move bytes all the time")
	set.StringVar(&o.bulkMode, "bulk-mode", "download", "what these do: upload or download")
	set.IntVar(&o.stopped, "stopped", 0, "upload, download: connections beside it that are sent bytes which nobody reads")
	set.BoolVar(&o.hashed, "hash", false, "upload, download: compare SHA-256 of both ends")
	set.BoolVar(&o.firstByte, "first-byte", false, "dials: each goes on until a byte came back from the target")
	set.DurationVar(&o.cancelAfter, "cancel-after", 50*time.Millisecond, "cancel: when a dial is given up")
	set.StringVar(&cpuOf, "cpu-of", "", "process ids of the tunnel, by comma: their CPU time and memory are reported as well")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	for pid := range strings.SplitSeq(cpuOf, ",") {
		if pid == "" {
			continue
		}
		number, err := strconv.Atoi(pid)
		if err != nil {
			return nil, fmt.Errorf("--cpu-of: %q is not a process id", pid)
		}
		o.cpuOf = append(o.cpuOf, number)
	}
	if o.target == "" && o.front.protocol != "tcp" {
		return nil, errors.New("--target is required")
	}
	return o, o.front.complete()
}

// result is the one line that is printed; what a mode does not measure is left out.
type result struct {
	Mode        string           `json:"mode"`
	Connections int              `json:"connections"`
	Ops         int64            `json:"ops,omitempty"`
	Bytes       int64            `json:"bytes,omitempty"`
	Seconds     float64          `json:"seconds"`
	PerSecond   float64          `json:"perSecond,omitempty"`
	MBPerSecond float64          `json:"mbPerSecond,omitempty"`
	P50Us       float64          `json:"p50Us,omitempty"`
	P99Us       float64          `json:"p99Us,omitempty"`
	Failures    map[string]int64 `json:"failures,omitempty"`
	BulkBytes   int64            `json:"bulkBytes,omitempty"`
	CPUSeconds  float64          `json:"cpuSeconds,omitempty"`
	RSSBytes    int64            `json:"rssBytes,omitempty"`
}

// tally is what a mode counts while it runs.
type tally struct {
	ops, bytes, bulk atomic.Int64
	lock             sync.Mutex
	latency          measure.Histogram
	failures         map[string]int64
}

func (t *tally) fail(err error) {
	told := failureOf(err)
	t.lock.Lock()
	defer t.lock.Unlock()
	if told.Reason != "" {
		told.Error = told.Reason + ": " + told.Error
	}
	t.failures[told.Error]++
}

func measureLoad(ctx context.Context, o *options) (*result, error) {
	modes := map[string]func(context.Context, *options, *tally) (func() error, error){
		"echo": prepareEcho, "upload": prepareBulk, "download": prepareBulk, "dials": prepareDials, "cancel": prepareDials,
	}
	counted := &tally{failures: map[string]int64{}}
	work, err := modes[o.mode](ctx, o, counted)
	if err != nil {
		return nil, err
	}
	usage, err := measure.StartUsage(o.cpuOf)
	if err != nil {
		return nil, err
	}
	if err := work(); err != nil {
		return nil, err
	}
	used, err := usage.Stop()
	if err != nil {
		return nil, err
	}
	seconds := used.Elapsed.Seconds()
	r := &result{
		Mode: o.mode, Connections: o.connections, Ops: counted.ops.Load(), Bytes: counted.bytes.Load(), Seconds: seconds,
		Failures: counted.failures, BulkBytes: counted.bulk.Load(),
		CPUSeconds: used.Server.Seconds(), RSSBytes: used.ServerRSS,
	}
	r.PerSecond = float64(r.Ops) / seconds
	r.MBPerSecond = float64(r.Bytes) / 1e6 / seconds
	if o.mode == "echo" {
		r.P50Us, r.P99Us = counted.latency.Milliseconds(0.5)*1000, counted.latency.Milliseconds(0.99)*1000
	}
	return r, nil
}

// connect opens all connections before anything is measured.
func connect(ctx context.Context, o *options, count int) ([]net.Conn, error) {
	connections := make([]net.Conn, count)
	for i := range connections {
		var err error
		if connections[i], err = o.front.dial(ctx, ctx, o.target); err != nil {
			return nil, fmt.Errorf("dial %d of %d: %w", i+1, count, err)
		}
	}
	return connections, nil
}

func opOf(mode string, hashed bool) byte {
	return map[string]map[bool]byte{
		"upload": {true: opUpload, false: opSink}, "download": {true: opDownload, false: opSource},
	}[mode][hashed]
}

// move sends or fetches that many bytes and compares what both ends have seen.
func move(connection net.Conn, mode string, length int64, hashed bool) error {
	if err := begin(connection, opOf(mode, hashed), length); err != nil {
		return err
	}
	transfer := func() ([]byte, error) { return give(connection, length, hashed) }
	if mode == "download" {
		transfer = func() ([]byte, error) { return take(connection, length, hashed) }
	}
	ours, err := transfer()
	if err != nil {
		return err
	}
	theirs := make([]byte, len(ours))
	if _, err := io.ReadFull(connection, theirs); err != nil {
		return fmt.Errorf("read the hash: %w", err)
	}
	if !bytes.Equal(ours, theirs) {
		return fmt.Errorf("%s of %d bytes: the hashes differ", mode, length)
	}
	return nil
}

// stopReading opens connections whose target sends for ever, and reads none of it.
func stopReading(ctx context.Context, o *options) error {
	connections, err := connect(ctx, o, o.stopped)
	if err != nil {
		return err
	}
	for _, connection := range connections {
		if err := begin(connection, opSource, 1<<50); err != nil {
			return err
		}
	}
	if o.stopped > 0 {
		time.Sleep(time.Second) // until every buffer on the way is full
	}
	return nil
}

func prepareBulk(ctx context.Context, o *options, counted *tally) (func() error, error) {
	if err := stopReading(ctx, o); err != nil {
		return nil, err
	}
	connections, err := connect(ctx, o, o.connections)
	if err != nil {
		return nil, err
	}
	each := o.bytes / int64(o.connections)
	return func() error {
		var all errgroup.Group
		for _, connection := range connections {
			all.Go(func() error {
				err := move(connection, o.mode, each, o.hashed)
				counted.bytes.Add(each)
				return err
			})
		}
		err := all.Wait()
		for _, connection := range connections {
			go connection.Close()
		}
		return err
	}, nil
}

func prepareEcho(ctx context.Context, o *options, counted *tally) (func() error, error) {
	connections, err := connect(ctx, o, o.connections)
	if err != nil {
		return nil, err
	}
	for _, connection := range connections {
		if err := begin(connection, opEcho, 0); err != nil {
			return nil, err
		}
	}
	bulk, err := startBulk(ctx, o, counted)
	if err != nil {
		return nil, err
	}
	return func() error {
		defer bulk()
		var all errgroup.Group
		for _, connection := range connections {
			all.Go(func() error { return echo(connection, o, counted) })
		}
		return all.Wait()
	}, nil
}

// startBulk keeps connections busy until the returned function is called.
func startBulk(ctx context.Context, o *options, counted *tally) (func(), error) {
	connections, err := connect(ctx, o, o.bulk)
	if err != nil {
		return nil, err
	}
	for _, connection := range connections {
		if err := begin(connection, opOf(o.bulkMode, false), 1<<50); err != nil {
			return nil, err
		}
		go func() {
			if o.bulkMode == "upload" {
				_, _ = give(&countingWriter{connection, &counted.bulk}, 1<<50, false)
			} else {
				_, _ = take(&countingReader{connection, &counted.bulk}, 1<<50, false)
			}
		}()
	}
	if o.bulk > 0 {
		time.Sleep(300 * time.Millisecond) // until the pipes are full
	}
	return func() {
		for _, connection := range connections {
			go connection.Close()
		}
	}, nil
}

func echo(connection net.Conn, o *options, counted *tally) error {
	question, reply := chunk[:o.size], make([]byte, o.size)
	var latency measure.Histogram
	for range o.count {
		began := time.Now()
		if _, err := connection.Write(question); err != nil {
			return err
		}
		if _, err := io.ReadFull(connection, reply); err != nil {
			return err
		}
		latency.Record(time.Since(began))
		if !bytes.Equal(question, reply) {
			return errors.New("the echo differs")
		}
		counted.ops.Add(1)
	}
	counted.lock.Lock()
	defer counted.lock.Unlock()
	counted.latency.Add(&latency)
	return nil
}

// prepareDials dials and closes; with cancel each dial is given up after a while, answered or not.
func prepareDials(ctx context.Context, o *options, counted *tally) (func() error, error) {
	var begun atomic.Int64
	return func() error {
		var all errgroup.Group
		for range o.connections {
			all.Go(func() error {
				for begun.Add(1) <= o.count && ctx.Err() == nil {
					dialOnce(ctx, o, counted)
				}
				return ctx.Err()
			})
		}
		return all.Wait()
	}, nil
}

func dialOnce(ctx context.Context, o *options, counted *tally) {
	dialing := ctx
	if o.mode == "cancel" {
		given, cancel := context.WithTimeout(ctx, o.cancelAfter)
		defer cancel()
		dialing = given
	}
	connection, err := o.front.dial(dialing, ctx, o.target)
	if err != nil {
		counted.fail(err)
		return
	}
	defer connection.Close()
	if o.firstByte {
		if err := exchangeByte(connection); err != nil {
			counted.fail(err)
			return
		}
	}
	counted.ops.Add(1)
}

func exchangeByte(connection net.Conn) error {
	if err := begin(connection, opEcho, 0); err != nil {
		return err
	}
	if _, err := connection.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(connection, make([]byte, 1))
	return err
}

type countingWriter struct {
	io.Writer
	count *atomic.Int64
}

func (w *countingWriter) Write(part []byte) (int, error) {
	n, err := w.Writer.Write(part)
	w.count.Add(int64(n))
	return n, err
}

type countingReader struct {
	io.Reader
	count *atomic.Int64
}

func (r *countingReader) Read(part []byte) (int, error) {
	n, err := r.Reader.Read(part)
	r.count.Add(int64(n))
	return n, err
}
