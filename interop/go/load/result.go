package main

import (
	"math"

	"sallyport/interop/go/measure"
)

// result is the one line that load prints.
type result struct {
	Op               string           `json:"op"`
	Connections      int              `json:"connections"`
	Streams          int              `json:"streams"`
	HTTP2            bool             `json:"http2"`
	Gzip             bool             `json:"gzip"`
	Ops              uint64           `json:"ops"`
	Seconds          float64          `json:"seconds"`
	OpsPerSecond     float64          `json:"opsPerSecond"`
	P50Ms            float64          `json:"p50Ms"`
	P99Ms            float64          `json:"p99Ms"`
	Bytes            int64            `json:"bytes"`
	Errors           map[string]int64 `json:"errors"`
	ClientCPUSeconds float64          `json:"clientCpuSeconds"`
	Server           *serverUsage     `json:"server,omitempty"`
	Watch            *watchResult     `json:"watch,omitempty"`
}

// serverUsage is there when --cpu-of names the server's processes.
type serverUsage struct {
	CPUSeconds      float64 `json:"cpuSeconds"`
	OpsPerCPUSecond float64 `json:"opsPerCpuSecond"`
	RSSBytes        int64   `json:"rssBytes"`
}

// watchResult is what the writer did; the result's ops are the events delivered, its p50 and p99 their delays.
type watchResult struct {
	Watchers        int     `json:"watchers"`
	Writes          uint64  `json:"writes"`
	WritesPerSecond float64 `json:"writesPerSecond"`
	WriteP50Ms      float64 `json:"writeP50Ms"`
	WriteP99Ms      float64 `json:"writeP99Ms"`
	MissingEvents   int64   `json:"missingEvents"`
}

func newResult(options options, total *tally, used measure.Used) *result {
	seconds := used.Elapsed.Seconds()
	r := &result{
		Op:               options.op,
		Connections:      options.connections,
		Streams:          options.streams,
		HTTP2:            options.http2,
		Gzip:             options.gzip,
		Ops:              total.latency.Count(),
		Seconds:          round(seconds),
		OpsPerSecond:     round(float64(total.latency.Count()) / seconds),
		P50Ms:            round(total.latency.Milliseconds(0.5)),
		P99Ms:            round(total.latency.Milliseconds(0.99)),
		Bytes:            total.bytes,
		Errors:           total.errors,
		ClientCPUSeconds: round(used.Client.Seconds()),
	}
	if len(options.cpuOf) > 0 {
		r.Server = &serverUsage{CPUSeconds: round(used.Server.Seconds()), RSSBytes: used.ServerRSS}
		if used.Server > 0 {
			r.Server.OpsPerCPUSecond = round(float64(r.Ops) / used.Server.Seconds())
		}
	}
	return r
}

func round(value float64) float64 {
	return math.Round(value*1000) / 1000
}
