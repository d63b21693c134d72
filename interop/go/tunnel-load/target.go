package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"sync"
)

// A client of the target begins with one byte and a length of eight: what to do with how many bytes.
const (
	opEcho     = 'e' // send back what comes; the length is ignored
	opUpload   = 'u' // take that many bytes, answer with their SHA-256
	opDownload = 'd' // send that many bytes and their SHA-256
	opSink     = 's' // as upload, but the answer is 32 zero bytes: hashing costs as much as a tunnel
	opSource   = 'o' // as download, likewise
	chunkSize  = 64 << 10
)

// chunk is what uploads and downloads are made of; no byte of the stream is where it would be if one were lost.
var chunk = func() []byte {
	bytes := make([]byte, 1<<20+chunkSize)
	generator := rand.NewChaCha8([32]byte{})
	_, _ = generator.Read(bytes)
	return bytes
}()

func serveTarget(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("target", flag.ContinueOnError)
	listen := set.String("listen", "127.0.0.1:0", "address to listen on")
	if err := set.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	fmt.Println(listener.Addr())
	var open sync.WaitGroup
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		open.Go(func() {
			defer connection.Close()
			_ = answer(connection) // the client notices by what it misses
		})
	}
}

func answer(connection net.Conn) error {
	var head [9]byte
	if _, err := io.ReadFull(connection, head[:]); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint64(head[1:]))
	switch head[0] {
	case opEcho:
		buffer := make([]byte, chunkSize)
		_, err := io.CopyBuffer(struct{ io.Writer }{connection}, struct{ io.Reader }{connection}, buffer)
		return err
	case opUpload, opSink:
		sum, err := take(connection, length, head[0] == opUpload)
		if err != nil {
			return err
		}
		_, err = connection.Write(sum)
		return err
	case opDownload, opSource:
		sum, err := give(connection, length, head[0] == opDownload)
		if err != nil {
			return err
		}
		_, err = connection.Write(sum)
		return err
	}
	return fmt.Errorf("unknown operation %q", head[0])
}

func begin(writer io.Writer, op byte, length int64) error {
	head := binary.BigEndian.AppendUint64([]byte{op}, uint64(length))
	_, err := writer.Write(head)
	return err
}

// give writes the stream of that length and returns its hash, or zeroes when nobody asked for it.
func give(writer io.Writer, length int64, hashed bool) ([]byte, error) {
	hash := sha256.New()
	for at := int64(0); at < length; {
		from := (at / chunkSize * 4099) % (1 << 20)
		part := chunk[from : from+min(chunkSize, length-at)]
		if hashed {
			hash.Write(part)
		}
		if _, err := writer.Write(part); err != nil {
			return nil, err
		}
		at += int64(len(part))
	}
	return sumOf(hash, hashed), nil
}

// take reads a stream of that length and returns its hash, or zeroes when nobody asked for it.
func take(reader io.Reader, length int64, hashed bool) ([]byte, error) {
	hash := sha256.New()
	buffer := make([]byte, chunkSize)
	for left := length; left > 0; {
		n, err := reader.Read(buffer[:min(chunkSize, left)])
		if hashed {
			hash.Write(buffer[:n])
		}
		left -= int64(n)
		if err != nil && left > 0 {
			return nil, fmt.Errorf("%d of %d bytes are missing: %w", left, length, err)
		}
	}
	return sumOf(hash, hashed), nil
}

func sumOf(hash hash.Hash, hashed bool) []byte {
	if !hashed {
		return make([]byte, sha256.Size)
	}
	return hash.Sum(nil)
}
