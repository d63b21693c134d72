package main

import (
	"bytes"
	_ "embed"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"
)

//go:embed cases.json
var casesText []byte

// sample is one text to decode as a kind, and what the real decoder made of it.
type sample struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	// Error is the message of a decoder that gave up.
	Error string `json:"error,omitempty"`
	// Strict are the problems that field validation reports.
	Strict []string `json:"strict,omitempty"`
	// Stored is the object after a trip through protobuf, as storage makes it.
	Stored json.RawMessage `json:"stored,omitempty"`
}

func writeCases(path string) error {
	var samples []sample
	if err := json.Unmarshal(casesText, &samples); err != nil {
		return err
	}
	for i := range samples {
		if err := judge(&samples[i]); err != nil {
			return err
		}
	}
	return writeJSON(path, samples)
}

func judge(s *sample) error {
	gvk := schema.GroupVersionKind{Group: s.Group, Version: "v1", Kind: s.Kind}
	object, err := scheme.New(gvk)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict([]byte(s.Text), object)
	if err != nil {
		s.Error = err.Error()
		return nil
	}
	for _, problem := range strict {
		s.Strict = append(s.Strict, problem.Error())
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	stored, err := throughStorage(object, gvk)
	if err != nil {
		return err
	}
	s.Stored, err = json.Marshal(stored)
	return err
}

func throughStorage(object runtime.Object, gvk schema.GroupVersionKind) (runtime.Object, error) {
	serializer := protobuf.NewSerializer(scheme, scheme)
	var encoded bytes.Buffer
	if err := serializer.Encode(object, &encoded); err != nil {
		return nil, err
	}
	stored, _, err := serializer.Decode(encoded.Bytes(), &gvk, nil)
	if err != nil {
		return nil, err
	}
	stored.GetObjectKind().SetGroupVersionKind(gvk)
	return stored, nil
}
