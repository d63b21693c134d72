// Command protodump writes what the real Kubernetes encoders make of sample objects: each kind
// with every field filled and with none, in protobuf and in JSON, and what the real decoder says
// to a list of JSON texts. Our decoders are tested against these files.
//
//	go run ./protodump ../../test/fixtures/generated
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protodump DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(directory string) error {
	samples := filepath.Join(directory, "protobuf")
	if err := os.MkdirAll(samples, 0o755); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := writeSamples(samples, kind); err != nil {
			return fmt.Errorf("%T: %w", kind, err)
		}
	}
	if err := writeCases(filepath.Join(directory, "structure.json")); err != nil {
		return err
	}
	return writeFaults(filepath.Join(directory, "syntax.json"))
}

func writeJSON(path string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// writeSamples writes one kind with all fields filled and with none.
func writeSamples(directory string, kind runtime.Object) error {
	gvk, err := gvkOf(kind)
	if err != nil {
		return err
	}
	name := strings.ToLower(gvk.Kind)
	if gvk.Group == "events.k8s.io" {
		name = "events-" + name
	}
	empty := kind.DeepCopyObject()
	full := kind.DeepCopyObject()
	(&filler{}).fill(reflect.ValueOf(full).Elem(), 0)
	for suffix, object := range map[string]runtime.Object{"": full, "-empty": empty} {
		object.GetObjectKind().SetGroupVersionKind(gvk)
		if err := writeBoth(filepath.Join(directory, name+suffix), object); err != nil {
			return err
		}
	}
	return nil
}

func writeBoth(path string, object runtime.Object) error {
	var encoded bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &encoded); err != nil {
		return err
	}
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".pb", encoded.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path+".json", append(text, '\n'), 0o644)
}
