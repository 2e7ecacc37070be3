package main

import (
	"github.com/spf13/cobra"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// offered is what a kubelet with a command line registers on a machine.
type offered struct {
	Error       string              `json:"error"`
	Allocatable corev1.ResourceList `json:"allocatable"`
	MaxPods     int32               `json:"maxPods"`
	PodsPerCore int32               `json:"podsPerCore"`
	Labels      map[string]string   `json:"labels"`
	Taints      []corev1.Taint      `json:"taints"`
}

// asked is what a kubelet is started with: its arguments, and the capacity of its machine.
type asked struct {
	Arguments []string            `json:"arguments"`
	Capacity  corev1.ResourceList `json:"capacity"`
}

// newAllocatableCommand returns a command that says what kubelets would offer to pods. The file has
// a JSON list of these.
func newAllocatableCommand() *cobra.Command {
	short := "say what kubelets with these command lines would offer to pods"
	return newFileCommand("allocatable", short, func(kubelet asked) offered {
		var found offered
		if err := found.by(kubelet.Arguments, kubelet.Capacity); err != nil {
			found.Error = err.Error()
		}
		return found
	})
}

// by says what a kubelet would offer: its settings are read by the kubelet's own code. That
// allocatable is what is left of the capacity, and never below zero, is the formula.
//
// Source: GetNodeAllocatableReservation and setNodeStatusMachineInfo of
// https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/nodestatus/setters.go (2026-11)
func (o *offered) by(arguments []string, capacity corev1.ResourceList) error {
	said, err := readSettings(arguments)
	if err != nil {
		return err
	}
	held, err := reservation(said.config, capacity)
	if err != nil {
		return err
	}
	o.Allocatable = corev1.ResourceList{}
	for name, whole := range capacity {
		left := whole.DeepCopy()
		left.Sub(held[name])
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, whole.Format)
		}
		o.Allocatable[name] = left
	}
	o.MaxPods, o.PodsPerCore = said.config.MaxPods, said.config.PodsPerCore
	o.Labels, o.Taints = said.flags.NodeLabels, said.config.RegisterWithTaints
	return nil
}
