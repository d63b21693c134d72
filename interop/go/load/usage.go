package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

var start = time.Now()

// sinceStart is a clock that no time adjustment moves, in nanoseconds.
func sinceStart() int64 {
	return int64(time.Since(start))
}

// usage notes the CPU time of the client and of the server's processes over the measured span.
type usage struct {
	pids           []int
	began          time.Time
	client, server time.Duration
}

type used struct {
	elapsed, client, server time.Duration
	serverRSS               int64
}

func startUsage(pids []int) (*usage, error) {
	server, err := cpuOf(pids)
	if err != nil {
		return nil, err
	}
	return &usage{pids: pids, began: time.Now(), client: ownCPU(), server: server}, nil
}

func (u *usage) stop() (used, error) {
	elapsed, client := time.Since(u.began), ownCPU()
	server, err := cpuOf(u.pids)
	if err != nil {
		return used{}, err
	}
	rss, err := rssOf(u.pids)
	return used{elapsed: elapsed, client: client - u.client, server: server - u.server, serverRSS: rss}, err
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
