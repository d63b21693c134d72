package main

import (
	_ "embed"
	"encoding/json"

	kjson "sigs.k8s.io/json"
)

//go:embed syntax.json
var syntaxText []byte

// fault is a text that is not JSON, and what the real decoder says to it.
type fault struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func writeFaults(path string) error {
	var texts []string
	if err := json.Unmarshal(syntaxText, &texts); err != nil {
		return err
	}
	faults := make([]fault, 0, len(texts))
	for _, text := range texts {
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
			faults = append(faults, fault{Text: text, Error: err.Error()})
		}
	}
	return writeJSON(path, faults)
}
