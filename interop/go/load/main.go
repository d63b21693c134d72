// Load drives a Kubernetes API server with one kind of request over TLS and prints what came of it as one line of JSON.
//
// It speaks plain HTTP with bodies made beforehand and decodes no answer, so that on a shared machine
// the server is measured rather than the client.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	options, err := parseOptions(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "load:", err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	result, err := run(ctx, options)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, options options) (*result, error) {
	target, err := openTarget(options)
	if err != nil {
		return nil, err
	}
	workers, err := target.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, options, workers); err != nil {
		return nil, err
	}
	if options.op == "watch" {
		return runWatch(ctx, options, workers)
	}
	return runRequests(ctx, options, workers)
}
