package main

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const maxDepth = 20

var quantities = []string{"1", "1500m", "1Gi", "1536Mi", "2k", "3e6", "0", "7n"}

// filler gives every field a value of its own, the same ones on every run.
type filler struct {
	count int
}

func (f *filler) next() int {
	f.count++
	return f.count
}

// signed alternates between small numbers, the largest one and its negative; never zero.
func (f *filler) signed(largest int64) int64 {
	switch n := f.next(); n % 3 {
	case 0:
		return largest
	case 1:
		return -largest
	default:
		return int64(n)
	}
}

func (f *filler) fill(value reflect.Value, depth int) {
	if depth > maxDepth || f.fillSpecial(value) {
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(fmt.Sprintf("s%d", f.next()))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32:
		value.SetInt(f.signed(2147483647))
	case reflect.Int64:
		value.SetInt(f.signed(1<<53 - 1))
	case reflect.Float64:
		value.SetFloat(1.5)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem(), depth+1)
	case reflect.Struct:
		for i := 0; i < value.NumField(); i++ {
			if value.Type().Field(i).Name != "TypeMeta" {
				f.fill(value.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		f.fillSlice(value, depth)
	case reflect.Map:
		f.fillMap(value, depth)
	}
}

func (f *filler) fillSlice(value reflect.Value, depth int) {
	if value.Type().Elem().Kind() == reflect.Uint8 {
		value.SetBytes([]byte{0, byte(f.next()), 0xff, 0xfe})
		return
	}
	length := 1
	if value.Type().Elem().Kind() != reflect.Struct {
		length = 2
	}
	value.Set(reflect.MakeSlice(value.Type(), length, length))
	for i := 0; i < length; i++ {
		f.fill(value.Index(i), depth+1)
	}
}

func (f *filler) fillMap(value reflect.Value, depth int) {
	value.Set(reflect.MakeMap(value.Type()))
	for i := 0; i < 2; i++ {
		key := reflect.New(value.Type().Key()).Elem()
		key.SetString(fmt.Sprintf("k%d", f.next()))
		element := reflect.New(value.Type().Elem()).Elem()
		f.fill(element, depth+1)
		value.SetMapIndex(key, element)
	}
}

// fillSpecial handles the types that have a JSON form of their own.
func (f *filler) fillSpecial(value reflect.Value) bool {
	at := time.Unix(int64(f.count)*86461, 123456000).UTC()
	switch target := value.Addr().Interface().(type) {
	case *metav1.Time:
		target.Time = at
	case *metav1.MicroTime:
		target.Time = at
	case *metav1.FieldsV1:
		target.SetRawString(`{"f:metadata":{"f:labels":{".":{}}}}`)
	case *runtime.RawExtension:
		target.Raw = []byte(`{"kind":"ConfigMap","apiVersion":"v1"}`)
	case *resource.Quantity:
		*target = resource.MustParse(quantities[f.next()%len(quantities)])
	case *intstr.IntOrString:
		if f.next()%2 == 0 {
			*target = intstr.FromInt32(int32(f.count))
		} else {
			*target = intstr.FromString(fmt.Sprintf("port-%d", f.count))
		}
	default:
		return false
	}
	return true
}
