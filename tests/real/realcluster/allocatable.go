package main

import (
	"encoding/json"
	"fmt"
	"os"

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

// newAllocatableCommand returns a command that says what kubelets would offer. The file has a JSON
// list of machines, each with the arguments of its kubelet and its capacity.
func newAllocatableCommand() *cobra.Command {
	return &cobra.Command{
		Use:          "allocatable FILE",
		Short:        "say what kubelets with these command lines would offer to pods",
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			var machines []struct {
				Arguments []string            `json:"arguments"`
				Capacity  corev1.ResourceList `json:"capacity"`
			}
			if err := json.Unmarshal(text, &machines); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			found := make([]offered, len(machines))
			for i, one := range machines {
				if err := found[i].by(one.Arguments, one.Capacity); err != nil {
					found[i].Error = err.Error()
				}
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(found)
		},
	}
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
