package main

import (
	"strconv"
	"time"

	"sallyport/interop/go/measure"
)

// tally counts the answers of one worker, or of all together.
type tally struct {
	latency measure.Histogram
	bytes   int64
	errors  map[string]int64
}

func newTally() *tally {
	return &tally{errors: map[string]int64{}}
}

func (t *tally) record(latency time.Duration, status, size int, err error) {
	switch {
	case err != nil:
		t.errors["network"]++
		// A server that is gone must not turn the load into a busy loop.
		time.Sleep(5 * time.Millisecond)
	case status >= 300:
		t.errors[strconv.Itoa(status)]++
	default:
		t.latency.Record(latency)
		t.bytes += int64(size)
	}
}

func (t *tally) add(other *tally) {
	t.latency.Add(&other.latency)
	t.bytes += other.bytes
	for cause, count := range other.errors {
		t.errors[cause] += count
	}
}
