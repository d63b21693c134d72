// Informer watches the ConfigMaps of a namespace through client-go's shared informer
// and prints each event as one JSON line, until stdin closes or SIGTERM comes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type event struct {
	Type            string `json:"type"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	UID             string `json:"uid,omitempty"`
	// Relisted: the deletion was not watched but noticed by a new list, so the object is its last known state.
	Relisted bool `json:"relisted,omitempty"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	namespace := flag.String("namespace", "", "namespace to watch; empty: all")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := run(ctx, *kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	defer factory.Shutdown()
	configMaps := factory.Core().V1().ConfigMaps().Informer()
	out := &printer{encoder: json.NewEncoder(os.Stdout)}
	registration, err := configMaps.AddEventHandler(out)
	if err != nil {
		return fmt.Errorf("add handler: %w", err)
	}
	factory.Start(ctx.Done())
	// The registration's own HasSynced: the first list has not only reached the cache but was printed.
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		out.print(event{Type: "SYNCED"})
	}
	<-ctx.Done()
	return nil
}

// printer is the informer's event handler.
type printer struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (p *printer) OnAdd(obj any, _ bool) {
	p.print(describe("ADDED", obj.(*corev1.ConfigMap)))
}

func (p *printer) OnUpdate(before, after any) {
	was, is := before.(*corev1.ConfigMap), after.(*corev1.ConfigMap)
	// A new list reports every object again, the unchanged as well.
	if was.UID != is.UID || was.ResourceVersion != is.ResourceVersion {
		p.print(describe("MODIFIED", is))
	}
}

func (p *printer) OnDelete(obj any) {
	tombstone, relisted := obj.(cache.DeletedFinalStateUnknown)
	if relisted {
		obj = tombstone.Obj
	}
	line := describe("DELETED", obj.(*corev1.ConfigMap))
	line.Relisted = relisted
	p.print(line)
}

func (p *printer) print(line event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.encoder.Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, "informer: cannot print:", err)
		os.Exit(1)
	}
}

func describe(kind string, object *corev1.ConfigMap) event {
	return event{
		Type:            kind,
		Namespace:       object.Namespace,
		Name:            object.Name,
		ResourceVersion: object.ResourceVersion,
		UID:             string(object.UID),
	}
}
