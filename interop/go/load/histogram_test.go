package main

import (
	"math"
	"testing"
	"time"
)

func TestEveryBucketHoldsItsOwnMiddle(t *testing.T) {
	for bucket := range len(histogram{}.counts) {
		if got := bucketOf(middleOf(bucket)); got != bucket {
			t.Fatalf("the middle of bucket %d falls into bucket %d", bucket, got)
		}
	}
	if last := bucketOf(math.MaxUint64); last != len(histogram{}.counts)-1 {
		t.Fatalf("the largest value falls into bucket %d of %d", last, len(histogram{}.counts))
	}
}

func TestPercentilesAreWithinTwoPercent(t *testing.T) {
	var h histogram
	for i := 1; i <= 10_000; i++ {
		h.record(time.Duration(i) * time.Microsecond)
	}
	for share, want := range map[float64]float64{0.5: 5, 0.99: 9.9, 1: 10} {
		if got := h.milliseconds(share); math.Abs(got-want) > want*0.02 {
			t.Errorf("share %v: %v ms, want %v", share, got, want)
		}
	}
}
