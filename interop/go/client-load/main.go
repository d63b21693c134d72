// Client-load reads one ConfigMap again and again through client-go's typed client, as a program would that has an exec
// plugin in its kubeconfig, and prints what came of it as one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"sallyport/interop/go/measure"
)

type options struct {
	kubeconfig  string
	concurrency int
	seconds     float64
}

// result has the fields of bench/credentials/load.ts.
type result struct {
	PerSecond    float64 `json:"perSecond"`
	CPUMicros    float64 `json:"cpuMicros"`
	PerCPUSecond float64 `json:"perCpuSecond"`
	P50          float64 `json:"p50"`
	P99          float64 `json:"p99"`
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	flag.IntVar(&o.concurrency, "concurrency", 1, "requests in flight")
	flag.Float64Var(&o.seconds, "seconds", 3, "how long to measure")
	flag.Parse()
	found, err := run(context.Background(), o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (*result, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	// Without this the client waits on purpose: by default it asks five times a second.
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	get := func() error {
		found, err := client.CoreV1().ConfigMaps("default").Get(ctx, "a", metav1.GetOptions{})
		if err == nil && found.Name != "a" {
			err = errors.New("a wrong answer")
		}
		return err
	}
	if _, err := repeat(get, o.concurrency, time.Second); err != nil {
		return nil, err
	}
	usage, err := measure.StartUsage(nil)
	if err != nil {
		return nil, err
	}
	times, err := repeat(get, o.concurrency, time.Duration(o.seconds*float64(time.Second)))
	if err != nil {
		return nil, err
	}
	used, err := usage.Stop()
	if err != nil {
		return nil, err
	}
	count := float64(times.Count())
	return &result{
		PerSecond:    count / used.Elapsed.Seconds(),
		CPUMicros:    float64(used.Client.Microseconds()) / count,
		PerCPUSecond: count / used.Client.Seconds(),
		P50:          times.Milliseconds(0.5),
		P99:          times.Milliseconds(0.99),
	}, nil
}

// repeat keeps as many requests in flight for a while; the first failure ends it.
func repeat(get func() error, concurrency int, span time.Duration) (*measure.Histogram, error) {
	end := time.Now().Add(span)
	times := make([]measure.Histogram, concurrency)
	failures := make([]error, concurrency)
	var group sync.WaitGroup
	for i := range concurrency {
		group.Go(func() {
			for began := time.Now(); began.Before(end); began = time.Now() {
				if failures[i] = get(); failures[i] != nil {
					return
				}
				times[i].Record(time.Since(began))
			}
		})
	}
	group.Wait()
	var all measure.Histogram
	for i := range times {
		all.Add(&times[i])
	}
	return &all, errors.Join(failures...)
}
