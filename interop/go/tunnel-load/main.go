// Tunnel-load drives a tunnel through its front end as kube-apiserver does: gRPC by the konnectivity-client library, or
// HTTP CONNECT, each over a UNIX socket or mutual TLS; and plain TCP, for what has no front end.
//
//	tunnel-load target                 serves what the other modes talk to; prints its address
//	tunnel-load bridge FRONT...        takes CONNECT requests on a UNIX socket and dials them through a front end
//	tunnel-load echo|upload|download|dials|cancel FRONT...   measures and prints one line of JSON
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "tunnel-load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("which mode: target, bridge, echo, upload, download, dials or cancel?")
	}
	mode, rest := args[0], args[1:]
	if mode == "target" {
		return serveTarget(ctx, rest)
	}
	if mode == "bridge" {
		return serveBridge(ctx, rest)
	}
	options, err := parseLoad(mode, rest)
	if err != nil {
		return err
	}
	result, err := measureLoad(ctx, options)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
