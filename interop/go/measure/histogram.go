package measure

import (
	"math/bits"
	"time"
)

const (
	subBits = 6 // 64 steps per power of two: values are off by less than 1.6 %
	subs    = 1 << subBits
)

// Histogram counts durations at a fixed size, so that millions of events cost no memory.
type Histogram struct {
	counts [(64 - subBits + 1) * subs]uint64
	total  uint64
}

// Record counts one duration.
func (h *Histogram) Record(duration time.Duration) {
	h.counts[bucketOf(uint64(max(duration, 0)))]++
	h.total++
}

// Add counts all of another histogram as well.
func (h *Histogram) Add(other *Histogram) {
	for i, count := range other.counts {
		h.counts[i] += count
	}
	h.total += other.total
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 {
	return h.total
}

// Milliseconds is the smallest value that the given share of durations does not exceed.
func (h *Histogram) Milliseconds(share float64) float64 {
	rank := uint64(share * float64(h.total))
	var seen uint64
	for i, count := range h.counts {
		seen += count
		if count > 0 && seen >= rank {
			return float64(middleOf(i)) / float64(time.Millisecond)
		}
	}
	return 0
}

func bucketOf(value uint64) int {
	if value < subs {
		return int(value)
	}
	shift := bits.Len64(value) - subBits - 1
	return (shift+1)*subs + int(value>>shift) - subs
}

func middleOf(bucket int) uint64 {
	if bucket < subs {
		return uint64(bucket)
	}
	shift := bucket/subs - 1
	low := uint64(bucket%subs+subs) << shift
	return low + (uint64(1)<<shift)/2
}
