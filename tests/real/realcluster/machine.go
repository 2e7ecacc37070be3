package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	cadvisor "github.com/google/cadvisor/info/v1"
	cadvisorv2 "github.com/google/cadvisor/info/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
)

// machine is what the instance has, and what cAdvisor would say about it.
type machine struct {
	cadvisortest.Fake
	// Capacity has cpu, memory and ephemeral-storage.
	Capacity corev1.ResourceList `json:"capacity"`
	// Devices of the machine, shown while a container of their plugin runs.
	Devices map[corev1.ResourceName]device `json:"devices"`
	// Volumes is what the node service of the EBS CSI driver reports.
	Volumes *volumes `json:"volumes"`
	name    string
}

// device is a number of devices, and a part of the name of their plugin's image.
type device struct {
	Count resource.Quantity `json:"count"`
	Image string            `json:"image"`
}

func readMachine(path, name string) (*machine, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := &machine{name: name}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, key := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	} {
		if _, ok := found.Capacity[key]; !ok {
			return nil, fmt.Errorf("%s: no capacity of %s", path, key)
		}
	}
	return found, nil
}

func (m *machine) capacity() corev1.ResourceList { return m.Capacity.DeepCopy() }

func (m *machine) MachineInfo() (*cadvisor.MachineInfo, error) {
	return &cadvisor.MachineInfo{
		NumCores:       int(m.Capacity.Cpu().Value()),
		MemoryCapacity: uint64(m.Capacity.Memory().Value()),
		MachineID:      m.name,
		SystemUUID:     m.name,
		BootID:         fmt.Sprintf("%s-%d", m.name, os.Getpid()),
	}, nil
}

func (m *machine) VersionInfo() (*cadvisor.VersionInfo, error) {
	return &cadvisor.VersionInfo{KernelVersion: "6.12.0", ContainerOsVersion: "hollow"}, nil
}

func (m *machine) filesystem() (cadvisorv2.FsInfo, error) {
	size := uint64(m.Capacity.StorageEphemeral().Value())
	inodes, free := uint64(10_000_000), uint64(9_000_000)
	return cadvisorv2.FsInfo{
		Timestamp: time.Now(), Device: "/dev/nvme0n1p1", Mountpoint: "/",
		Capacity: size, Available: size / 10 * 8, Usage: size / 10 * 2,
		Inodes: &inodes, InodesFree: &free,
	}, nil
}

func (m *machine) ImagesFsInfo(context.Context) (cadvisorv2.FsInfo, error)    { return m.filesystem() }
func (m *machine) ContainerFsInfo(context.Context) (cadvisorv2.FsInfo, error) { return m.filesystem() }
func (m *machine) RootFsInfo() (cadvisorv2.FsInfo, error)                     { return m.filesystem() }
func (m *machine) GetDirFsInfo(string) (cadvisorv2.FsInfo, error)             { return m.filesystem() }

// reservation returns what a node's allocatable lacks of its capacity, as the kubelet's container
// manager computes it: kubeReserved, systemReserved and the hard eviction thresholds.
//
// Source: https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/ (2026-11)
func reservation(
	config *kubeletconfig.KubeletConfiguration, capacity corev1.ResourceList,
) (corev1.ResourceList, error) {
	thresholds, err := eviction.ParseThresholdConfig(nil, config.EvictionHard, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	held := corev1.ResourceList{}
	add := func(name corev1.ResourceName, amount resource.Quantity) {
		sum := held[name]
		sum.Add(amount)
		held[name] = sum
	}
	for _, amounts := range []map[string]string{config.KubeReserved, config.SystemReserved} {
		for name, text := range amounts {
			amount, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("reserved %s: %w", name, err)
			}
			add(corev1.ResourceName(name), amount)
		}
	}
	signals := map[evictionapi.Signal]corev1.ResourceName{
		evictionapi.SignalMemoryAvailable: corev1.ResourceMemory,
		evictionapi.SignalNodeFsAvailable: corev1.ResourceEphemeralStorage,
	}
	for _, threshold := range thresholds {
		if name, ok := signals[threshold.Signal]; ok {
			whole := capacity[name]
			add(name, *evictionapi.GetThresholdQuantity(threshold.Value, &whole))
		}
	}
	return held, nil
}

// containerManager is kubemark's, with a reservation and devices.
type containerManager struct {
	cm.ContainerManager
	machine  *machine
	reserved corev1.ResourceList
	running  *images
}

func newContainerManager(
	machine *machine, reserved corev1.ResourceList, running *images,
) *containerManager {
	return &containerManager{
		ContainerManager: cm.NewStubContainerManager(),
		machine:          machine, reserved: reserved, running: running,
	}
}

func (c *containerManager) GetCapacity(bool) corev1.ResourceList {
	name := corev1.ResourceEphemeralStorage
	return corev1.ResourceList{name: c.machine.Capacity[name]}
}

func (c *containerManager) GetNodeAllocatableReservation() corev1.ResourceList {
	return c.reserved.DeepCopy()
}

// GetDevicePluginResourceCapacity returns the devices whose plugin runs on this node.
func (c *containerManager) GetDevicePluginResourceCapacity() (
	capacity, allocatable corev1.ResourceList, inactive []string,
) {
	capacity = corev1.ResourceList{}
	for name, device := range c.machine.Devices {
		if c.running.one(device.Image) {
			capacity[name] = device.Count.DeepCopy()
		}
	}
	return capacity, capacity.DeepCopy(), nil
}

// images answers which images run on the node.
type images struct {
	runtime internalapi.RuntimeService
}

// one returns whether a container runs whose image has the text in its name.
func (i *images) one(text string) bool {
	state := &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	found, err := i.runtime.ListContainers(
		context.Background(), &runtimeapi.ContainerFilter{State: state})
	if err != nil {
		return false
	}
	for _, container := range found {
		image := container.GetImage()
		if strings.Contains(image.GetUserSpecifiedImage()+" "+image.GetImage(), text) {
			return true
		}
	}
	return false
}
