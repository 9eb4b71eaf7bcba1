// go-agent is a small node agent for numalign: it has pods judged by Admission over its Unix
// socket, says what each container gets, and gives everything back when it is told to end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"

	numalign "example.com/go-agent/gen/numalign/v1"
)

const (
	usage   = "usage: go-agent [--socket PATH] [--owner NAME] [--deadline 10s] POD.json..."
	toEnd   = 10 * time.Second // for giving everything back
	refused = 3                // exit code: no pod is admitted
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("go-agent: ")
	socket := flag.String("socket", "/run/numalign/admission.sock", "socket of the Admission service")
	owner := flag.String("owner", "go-agent", "the agent's domain; no two agents of a node share one")
	deadline := flag.Duration("deadline", 10*time.Second, "how long one try of a call may take")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := run(*socket, *owner, *deadline, flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

// run is the agent's life: present the pods, watch, release.
func run(socket, owner string, deadline time.Duration, paths []string) (int, error) {
	objects := make([]*corev1.Pod, len(paths))
	for i, path := range paths {
		object, err := readPod(path)
		if err != nil {
			return 0, err
		}
		objects[i] = object
	}
	// A Unix socket needs no encryption: its mode says who may connect. gRPC by itself would wait up
	// to two minutes before it looked for a socket again.
	connection, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{
			BaseDelay: firstPause, Multiplier: 2, Jitter: 0.2, MaxDelay: longestPause,
		}}))
	if err != nil {
		return 0, fmt.Errorf("--socket %s: %w", socket, err)
	}
	defer connection.Close()
	one, err := newAgent(numalign.NewAdmissionClient(connection), owner, deadline, objects)
	if err != nil {
		return 0, err
	}
	ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return live(ending, one)
}

// live ends with an error where a call failed for good; what was admitted is given back even then.
func live(ending context.Context, one *agent) (int, error) {
	err := one.admitAll(ending)
	any := false
	for _, pod := range one.pods {
		any = any || pod.admitted
	}
	if err == nil && any {
		err = one.follow(ending)
	}
	if ending.Err() != nil {
		err = nil // told to end: what was under way is no failure
	}
	last, cancel := context.WithTimeout(context.Background(), toEnd)
	defer cancel()
	if err := errors.Join(err, one.releaseAll(last)); err != nil {
		return 0, err
	}
	if !any && ending.Err() == nil {
		return refused, nil
	}
	return 0, nil
}
