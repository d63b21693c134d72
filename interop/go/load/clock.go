package main

import "time"

var start = time.Now()

// sinceStart is a clock that no time adjustment moves, in nanoseconds.
func sinceStart() int64 {
	return int64(time.Since(start))
}
