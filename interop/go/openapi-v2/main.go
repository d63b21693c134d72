// Openapi-v2 reads an OpenAPI v2 document in gnostic's protobuf form from stdin, as client-go does,
// and prints it as JSON. It fails where kubectl would: with a document that kube-openapi cannot use.
package main

import (
	"fmt"
	"io"
	"os"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	models "k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/yaml"
)

func run() error {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	document := &openapi_v2.Document{}
	if err := proto.Unmarshal(input, document); err != nil {
		return err
	}
	if unknown := document.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		return fmt.Errorf("%d bytes are no known field", len(unknown))
	}
	if _, err := models.NewOpenAPIData(document); err != nil {
		return err
	}
	text, err := document.YAMLValue("")
	if err != nil {
		return err
	}
	json, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(json, '\n'))
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openapi-v2:", err)
		os.Exit(1)
	}
}
