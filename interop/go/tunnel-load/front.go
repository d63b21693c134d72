package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
)

// front is a tunnel's front end and how to reach it.
type front struct {
	protocol, uds, address    string
	ca, cert, key, serverName string
	tls                       *tls.Config
}

func (f *front) flags(set *flag.FlagSet) {
	set.StringVar(&f.protocol, "front", "grpc", "grpc, http-connect, or tcp: no front end, --address is the target itself")
	set.StringVar(&f.uds, "uds", "", "UNIX socket of the front end")
	set.StringVar(&f.address, "address", "", "host:port of the front end, with mutual TLS unless --front tcp")
	set.StringVar(&f.ca, "ca", "", "file of the CA of the front end")
	set.StringVar(&f.cert, "cert", "", "file of the client certificate")
	set.StringVar(&f.key, "key", "", "file of the client's key")
	set.StringVar(&f.serverName, "server-name", "", "name that the front end's certificate must have, instead of the host")
}

func (f *front) complete() error {
	if (f.uds == "") == (f.address == "") {
		return errors.New("either --uds or --address")
	}
	if f.protocol == "tcp" || f.uds != "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return err
	}
	bundle, err := os.ReadFile(f.ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("%s holds no certificate", f.ca)
	}
	f.tls = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: f.serverName}
	return nil
}

// dial connects to the target through the front end; the connection is cut when life ends.
func (f *front) dial(ctx, life context.Context, target string) (net.Conn, error) {
	switch f.protocol {
	case "grpc":
		return f.dialGRPC(ctx, life, target)
	case "http-connect":
		return f.dialConnect(ctx, target)
	case "tcp":
		return f.open(ctx)
	}
	return nil, fmt.Errorf("--front: %q is none", f.protocol)
}

func (f *front) open(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	if f.uds != "" {
		return dialer.DialContext(ctx, "unix", f.uds)
	}
	if f.tls == nil {
		return dialer.DialContext(ctx, "tcp", f.address)
	}
	return (&tls.Dialer{Config: f.tls}).DialContext(ctx, "tcp", f.address)
}

// One gRPC connection for each proxied one, as kube-apiserver does it.
func (f *front) dialGRPC(ctx, life context.Context, target string) (net.Conn, error) {
	options := []grpc.DialOption{
		grpc.WithBlock(), grpc.WithReturnConnectionError(), grpc.FailOnNonTempDialError(true), //nolint:staticcheck // the library still dials so
	}
	address := f.address
	if f.uds != "" {
		address = f.uds
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.open(ctx) }))
	} else {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(f.tls)))
	}
	tunnel, err := client.CreateSingleUseGrpcTunnelWithContext(ctx, life, address, options...)
	if err != nil {
		return nil, err
	}
	return tunnel.DialContext(ctx, "tcp", target)
}

// refusal is what a front end answered instead of 200.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("status %d: %s", r.status, r.text)
}

func (f *front) dialConnect(ctx context.Context, target string) (net.Conn, error) {
	connection, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { connection.Close() })()
	// The Host header is a dummy in kube-apiserver too.
	if _, err := fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		connection.Close()
		return nil, &refusal{status: response.StatusCode, text: string(text)}
	}
	if reader.Buffered() > 0 {
		return nil, errors.Join(errors.New("bytes came together with the 200"), connection.Close())
	}
	return connection, nil
}
