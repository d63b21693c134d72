package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/interop/go/measure"
)

// runRequests lets every worker repeat its operation and measures each answer.
func runRequests(ctx context.Context, options options, workers []*worker) (*result, error) {
	operations := make([]operation, len(workers))
	for i, worker := range workers {
		var err error
		if operations[i], err = worker.newOperation(ctx); err != nil {
			return nil, err
		}
	}
	if options.count == 0 && options.warmup > 0 {
		loop(ctx, operations, untilTime(options.warmup))
	}
	usage, err := measure.StartUsage(options.cpuOf)
	if err != nil {
		return nil, err
	}
	more := untilTime(options.duration)
	if options.count > 0 {
		more = untilCount(options.count)
	}
	total := loop(ctx, operations, more)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	used, err := usage.Stop()
	if err != nil {
		return nil, err
	}
	return newResult(options, total, used), nil
}

// loop repeats the operations while more allows it. What is in flight at the end is awaited and counted.
func loop(ctx context.Context, operations []operation, more func() bool) *tally {
	tallies := make([]*tally, len(operations))
	var group sync.WaitGroup
	for i, operation := range operations {
		tallies[i] = newTally()
		group.Go(func() {
			for ctx.Err() == nil && more() {
				began := time.Now()
				status, answer, err := operation(ctx)
				tallies[i].record(time.Since(began), status, len(answer), err)
			}
		})
	}
	group.Wait()
	total := newTally()
	for _, one := range tallies {
		total.add(one)
	}
	return total
}

func untilTime(duration time.Duration) func() bool {
	deadline := time.Now().Add(duration)
	return func() bool { return time.Now().Before(deadline) }
}

func untilCount(count int64) func() bool {
	var started atomic.Int64
	return func() bool { return started.Add(1) <= count }
}
