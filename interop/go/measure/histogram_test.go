package measure

import (
	"math"
	"testing"
	"time"
)

func TestEveryBucketHoldsItsOwnMiddle(t *testing.T) {
	for bucket := range len(Histogram{}.counts) {
		if got := bucketOf(middleOf(bucket)); got != bucket {
			t.Fatalf("the middle of bucket %d falls into bucket %d", bucket, got)
		}
	}
	if last := bucketOf(math.MaxUint64); last != len(Histogram{}.counts)-1 {
		t.Fatalf("the largest value falls into bucket %d of %d", last, len(Histogram{}.counts))
	}
}

func TestPercentilesAreWithinTwoPercent(t *testing.T) {
	var h Histogram
	for i := 1; i <= 10_000; i++ {
		h.Record(time.Duration(i) * time.Microsecond)
	}
	for share, want := range map[float64]float64{0.5: 5, 0.99: 9.9, 1: 10} {
		if got := h.Milliseconds(share); math.Abs(got-want) > want*0.02 {
			t.Errorf("share %v: %v ms, want %v", share, got, want)
		}
	}
}
