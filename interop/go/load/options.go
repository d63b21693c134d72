package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	kubeconfig, context, namespace string
	op                             string
	connections, streams           int
	duration, warmup               time.Duration
	count                          int64
	size, objects, limit           int
	resourceVersion                string
	path                           string
	body                           []byte
	http2, gzip                    bool
	rate                           float64
	write                          string
	cpuOf                          []int
}

func parseOptions(args []string) (options, error) {
	var o options
	var seconds, warmup float64
	var cpuOf, body string
	set := flag.NewFlagSet("load", flag.ContinueOnError)
	set.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig: bearer token or client certificate")
	set.StringVar(&o.context, "context", "", "context of the kubeconfig instead of the current one")
	set.StringVar(&o.namespace, "namespace", "load", "namespace to work in, made when it is missing")
	set.StringVar(&o.op, "op", "", "get, list, create, update, watch or request")
	set.IntVar(&o.connections, "connections", 1, "TCP connections")
	set.IntVar(&o.streams, "streams", 1, "requests in flight (or watches) per connection, with --http2")
	set.Float64Var(&seconds, "seconds", 0, "how long to measure")
	set.Int64Var(&o.count, "count", 0, "how many requests to measure, instead of --seconds; not for watch")
	set.Float64Var(&warmup, "warmup", 1, "seconds of the same load before measuring; only with --seconds, not for watch")
	set.IntVar(&o.size, "size", 1024, "bytes of payload in an object")
	set.IntVar(&o.objects, "objects", 1, "objects that get and list find, made when they are missing; 0: as the namespace is")
	set.IntVar(&o.limit, "limit", 0, "page size of list; each page counts as one request")
	set.StringVar(&o.resourceVersion, "resource-version", "", "resourceVersion parameter of get and list, for example 0")
	set.StringVar(&o.path, "path", "", "what request asks for")
	set.StringVar(&body, "body", "", "file that request posts; {n} in it is a number that no other request has")
	set.BoolVar(&o.http2, "http2", false, "use HTTP/2")
	set.BoolVar(&o.gzip, "gzip", false, "accept gzip; answers are counted as they come, not unpacked")
	set.Float64Var(&o.rate, "rate", 0, "writes per second for watch; 0: as fast as they are acknowledged")
	set.StringVar(&o.write, "write", "update", "what watch's writer does: update one object or create many")
	set.StringVar(&cpuOf, "cpu-of", "", "process ids of the server, by comma: their CPU time and memory are reported as well")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if body != "" {
		var err error
		if o.body, err = os.ReadFile(body); err != nil {
			return o, fmt.Errorf("--body: %w", err)
		}
	}
	o.duration = time.Duration(seconds * float64(time.Second))
	o.warmup = time.Duration(warmup * float64(time.Second))
	for pid := range strings.SplitSeq(cpuOf, ",") {
		if pid == "" {
			continue
		}
		number, err := strconv.Atoi(pid)
		if err != nil {
			return o, fmt.Errorf("--cpu-of: %q is not a process id", pid)
		}
		o.cpuOf = append(o.cpuOf, number)
	}
	return o, errors.Join(o.problems(set.Args())...)
}

func (o options) problems(extra []string) []error {
	var found []error
	check := func(ok bool, message string) {
		if !ok {
			found = append(found, errors.New(message))
		}
	}
	check(len(extra) == 0, "takes flags only")
	check(o.kubeconfig != "", "--kubeconfig is required")
	check(slices.Contains([]string{"get", "list", "create", "update", "watch", "request"}, o.op),
		"--op must be get, list, create, update, watch or request")
	check((o.op == "request") == (o.path != ""), "--path goes with --op request")
	check(o.connections > 0 && o.streams > 0, "--connections and --streams must be positive")
	check(o.streams == 1 || o.http2, "--streams needs --http2: HTTP/1.1 has one request per connection at a time")
	check((o.duration > 0) != (o.count > 0), "exactly one of --seconds and --count is needed")
	check(o.op != "watch" || o.duration > 0, "--op watch needs --seconds")
	check(o.op != "watch" || !o.gzip, "--gzip is not for watch: servers do not compress watches")
	check(o.size <= 1<<20, "--size is at most 1 MiB, as an object is")
	check(o.op != "get" || o.objects > 0, "--op get needs --objects")
	check(slices.Contains([]string{"update", "create"}, o.write), "--write must be update or create")
	check(o.size >= 0 && o.objects >= 0 && o.limit >= 0 && o.rate >= 0 && o.warmup >= 0,
		"--size, --objects, --limit, --rate and --warmup cannot be negative")
	return found
}
