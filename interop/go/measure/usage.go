// Package measure has what the programs that measure share.
package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Usage notes the CPU time of the client and of the server's processes over the measured span.
type Usage struct {
	pids           []int
	began          time.Time
	client, server time.Duration
}

// Used is what a span has cost.
type Used struct {
	Elapsed, Client, Server time.Duration
	ServerRSS               int64
}

// StartUsage begins a span for a server of these processes.
func StartUsage(pids []int) (*Usage, error) {
	server, err := cpuOf(pids)
	if err != nil {
		return nil, err
	}
	return &Usage{pids: pids, began: time.Now(), client: ownCPU(), server: server}, nil
}

// Stop ends the span.
func (u *Usage) Stop() (Used, error) {
	elapsed, client := time.Since(u.began), ownCPU()
	server, err := cpuOf(u.pids)
	if err != nil {
		return Used{}, err
	}
	rss, err := rssOf(u.pids)
	return Used{Elapsed: elapsed, Client: client - u.client, Server: server - u.server, ServerRSS: rss}, err
}

func ownCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func cpuOf(pids []int) (time.Duration, error) {
	// Linux counts these in USER_HZ, which is 100 on every platform Go runs on.
	const tick = 10 * time.Millisecond
	const utime, stime = 11, 12
	var total time.Duration
	for _, pid := range pids {
		fields, err := statOf(pid)
		if err != nil {
			return 0, err
		}
		for _, index := range []int{utime, stime} {
			ticks, err := strconv.ParseInt(string(fields[index]), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
			}
			total += time.Duration(ticks) * tick
		}
	}
	return total, nil
}

func rssOf(pids []int) (int64, error) {
	const rss = 21
	var total int64
	for _, pid := range pids {
		fields, err := statOf(pid)
		if err != nil {
			return 0, err
		}
		pages, err := strconv.ParseInt(string(fields[rss]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read memory of process %d: %w", pid, err)
		}
		total += pages * int64(os.Getpagesize())
	}
	return total, nil
}

// statOf returns the fields after the program's name, which may itself hold spaces and parentheses.
func statOf(pid int) ([][]byte, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("--cpu-of: %w", err)
	}
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	if len(fields) < 22 {
		return nil, fmt.Errorf("--cpu-of: /proc/%d/stat is too short", pid)
	}
	return fields, nil
}
