package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kube "example.com/go-agent/gen/numalign/kube/core/v1"
)

// readPod reads a manifest in JSON and fills in what the API server would.
func readPod(path string) (*corev1.Pod, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(text, pod); err != nil {
		return nil, fmt.Errorf("%s: no Pod in JSON: %w", path, err)
	}
	if pod.Kind != "Pod" {
		return nil, fmt.Errorf("%s: kind: must be Pod, not %q", path, pod.Kind)
	}
	if pod.Name == "" {
		return nil, fmt.Errorf("%s: metadata.name: is missing", path)
	}
	if len(pod.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%s: spec.containers: must have at least one", path)
	}
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
	if pod.UID == "" {
		// The same manifest is the same pod, also for the agent's next process.
		sum := sha256.Sum256([]byte(pod.Namespace + "/" + pod.Name))
		pod.UID = types.UID(fmt.Sprintf("%x", sum[:16]))
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	return pod, nil
}

// requestLimits makes a limit without a request a request as well.
func requestLimits(resources *corev1.ResourceRequirements) {
	for name, amount := range resources.Limits {
		if _, given := resources.Requests[name]; !given {
			if resources.Requests == nil {
				resources.Requests = corev1.ResourceList{}
			}
			resources.Requests[name] = amount
		}
	}
}

// onTheWire is the pod as numalign's contract has it. Its v1.Pod has the field numbers of
// Kubernetes, so the bytes of one are the bytes of the other.
func onTheWire(pod *corev1.Pod) (*kube.Pod, error) {
	bytes, err := pod.Marshal()
	if err != nil {
		return nil, err
	}
	message := &kube.Pod{}
	return message, proto.Unmarshal(bytes, message)
}
