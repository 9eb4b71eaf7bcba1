package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	numalign "example.com/go-agent/gen/numalign/v1"
)

// verdictOf is a verdict as a word.
func verdictOf(verdict numalign.Verdict) string {
	return strings.ToLower(strings.TrimPrefix(verdict.String(), "VERDICT_"))
}

// given is what a container gets, on one line.
func given(has *numalign.ContainerAllocation) string {
	parts := []string{"the shared CPUs"}
	if has.Cpus != "" {
		parts[0] = "CPUs " + has.Cpus + " of its own"
	}
	for _, block := range has.Memory {
		nodes := make([]string, len(block.NumaNodes))
		for i, node := range block.NumaNodes {
			nodes[i] = strconv.FormatUint(uint64(node), 10)
		}
		size := strconv.FormatUint(block.Size>>20, 10)
		parts = append(parts, block.Resource+" "+size+"Mi on NUMA node "+strings.Join(nodes, ","))
	}
	for _, device := range has.Devices {
		parts = append(parts, device.Resource+" "+strings.Join(device.Ids, ","))
	}
	return strings.Join(parts, ", ")
}

// applied is what whoever starts the container has to set, one thing a line.
func applied(answer *numalign.PrepareContainerResponse) []string {
	var lines []string
	if answer.Cpus != "" {
		lines = append(lines, "cpuset.cpus="+answer.Cpus)
	}
	if answer.Mems != "" {
		lines = append(lines, "cpuset.mems="+answer.Mems)
	}
	edits := answer.GetEdits()
	var environment []string
	for name, value := range edits.GetEnvs() {
		environment = append(environment, "env "+name+"="+value)
	}
	sort.Strings(environment)
	lines = append(lines, environment...)
	for _, mount := range edits.GetMounts() {
		lines = append(lines, fmt.Sprintf("mount %s at %s", mount.HostPath, mount.ContainerPath))
	}
	for _, node := range edits.GetDeviceNodes() {
		lines = append(lines, fmt.Sprintf("device %s at %s", node.HostPath, node.ContainerPath))
	}
	for _, name := range edits.GetCdiDevices() {
		lines = append(lines, "CDI "+name)
	}
	return lines
}
