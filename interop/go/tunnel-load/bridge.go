package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"

	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
)

// serveBridge lets a program that has no Go library dial through it: a CONNECT request on a UNIX socket is dialled through
// the front end. 200 and the bytes follow, or 502 and a JSON object that says why. A client that leaves cancels its dial.
func serveBridge(ctx context.Context, args []string) error {
	var front front
	set := flag.NewFlagSet("bridge", flag.ContinueOnError)
	front.flags(set)
	listen := set.String("listen", "", "UNIX socket to listen on")
	if err := set.Parse(args); err != nil {
		return err
	}
	if err := front.complete(); err != nil {
		return err
	}
	listener, err := net.Listen("unix", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		bridge(&front, w, r)
	})}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Println(*listen)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func bridge(front *front, w http.ResponseWriter, r *http.Request) {
	life, end := context.WithCancel(context.Background())
	defer end()
	// Of a request that was not hijacked Go cancels the context when its client leaves.
	far, err := front.dial(r.Context(), life, r.RequestURI)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(failureOf(err))
		return
	}
	near, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		far.Close()
		return
	}
	if _, err := near.Write([]byte("HTTP/1.1 200 Connection Established\r\n\r\n")); err != nil {
		near.Close()
		far.Close()
		return
	}
	splice(near, buffered, far)
}

// failure is a refused dial in JSON.
type failure struct {
	Error  string `json:"error"`
	Reason string `json:"reason,omitempty"`
	Status int    `json:"status,omitempty"`
}

func failureOf(err error) failure {
	told := failure{Error: err.Error()}
	if is, reason := client.GetDialFailureReason(err); is {
		told.Reason = string(reason)
	}
	var refused *refusal
	if errors.As(err, &refused) {
		told.Status, told.Error = refused.status, refused.text
	}
	return told
}

// splice copies both ways until one side ends; the library knows no half-close.
func splice(near net.Conn, buffered io.Reader, far net.Conn) {
	done := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(far, buffered)
		done <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(near, struct{ io.Reader }{far})
		done <- struct{}{}
	}()
	<-done
	far.Close()
	near.Close()
	<-done
}
