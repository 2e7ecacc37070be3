package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// Problem is what problems.py writes: pods that wait, and what may be bought for them.
type Problem struct {
	// PreferencePolicy is Respect or Ignore.
	PreferencePolicy options.PreferencePolicy `json:"preferencePolicy"`
	Pool             v1.NodePool              `json:"pool"`
	Types            []InstanceType           `json:"types"`
	Workloads        []Workload               `json:"workloads"`
	// Arrivals are the names of all pods in the order in which they come, for a stream.
	Arrivals []string `json:"arrivals"`
	// Standing are nodes of one option each, with the pods on them, for a consolidation.
	Standing []Node `json:"standing"`
}

// InstanceType has the resources that are left for pods once overhead is subtracted, and daemons if
// there are no DaemonSets in a problem.
type InstanceType struct {
	Name        string              `json:"name"`
	Labels      map[string]string   `json:"labels"`
	Allocatable corev1.ResourceList `json:"allocatable"`
	// Capacity is the whole; empty if it does not matter.
	Capacity corev1.ResourceList `json:"capacity"`
	// Exotic types, metal and those with accelerators, are launched if nothing else is left.
	Exotic    bool       `json:"exotic"`
	Offerings []Offering `json:"offerings"`
}

// Offering is an instance type in a zone, and its price in millionths of a dollar per hour.
type Offering struct {
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	PriceMicros  int64  `json:"priceMicros"`
}

// Workload is a number of pods of one template, named NAME-0, NAME-1 and so on.
type Workload struct {
	Name     string                 `json:"name"`
	Replicas int                    `json:"replicas"`
	Template corev1.PodTemplateSpec `json:"template"`
}

func readProblem[P any](path string) P {
	text, err := os.ReadFile(path)
	check(err)
	var found P
	check(json.Unmarshal(text, &found))
	return found
}

// instanceTypes returns the types as a cloud provider gives them, and the names of exotic ones.
func (p Problem) instanceTypes() ([]*cloudprovider.InstanceType, map[string]bool) {
	keys := map[string]bool{}
	for _, t := range p.Types {
		for key := range t.Labels {
			keys[key] = true
		}
	}
	for key := range keys {
		v1.WellKnownLabels.Insert(key)
	}
	exotic := map[string]bool{}
	var found []*cloudprovider.InstanceType
	for _, t := range p.Types {
		exotic[t.Name] = t.Exotic
		found = append(found, t.forKarpenter(keys))
	}
	return found, exotic
}

func (t InstanceType) forKarpenter(keys map[string]bool) *cloudprovider.InstanceType {
	capacity := t.Capacity
	if len(capacity) == 0 {
		capacity = t.Allocatable
	}
	var zones, capacityTypes []string
	var offerings cloudprovider.Offerings
	for _, o := range t.Offerings {
		zones = append(zones, o.Zone)
		capacityTypes = append(capacityTypes, o.CapacityType)
		offerings = append(offerings, &cloudprovider.Offering{
			Available: true,
			Price:     float64(o.PriceMicros) / 1e6,
			Requirements: scheduling.NewLabelRequirements(map[string]string{
				corev1.LabelTopologyZone: o.Zone, v1.CapacityTypeLabelKey: o.CapacityType,
			}),
		})
	}
	slices.Sort(zones)
	slices.Sort(capacityTypes)
	requirements := scheduling.NewRequirements(
		scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, t.Name),
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, slices.Compact(zones)...),
		scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, slices.Compact(capacityTypes)...),
	)
	for key := range keys {
		if requirements.Has(key) {
			continue
		}
		if value, given := t.Labels[key]; given {
			requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value))
		} else {
			requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	return &cloudprovider.InstanceType{
		Name: t.Name, Requirements: requirements, Offerings: offerings, Capacity: capacity,
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: resources.Subtract(capacity, t.Allocatable)},
	}
}

// pods returns the pods of all workloads. Their UIDs, which break ties, are drawn by the seed.
func (p Problem) pods(seed int64) []*corev1.Pod {
	draw := rand.New(rand.NewSource(seed))
	created := metav1.NewTime(time.Unix(1_700_000_000, 0))
	var found []*corev1.Pod
	for _, w := range p.Workloads {
		for i := range w.Replicas {
			pod := &corev1.Pod{ObjectMeta: *w.Template.ObjectMeta.DeepCopy(), Spec: *w.Template.Spec.DeepCopy()}
			pod.Namespace, pod.Name, pod.CreationTimestamp = "default", w.Name+"-"+strconv.Itoa(i), created
			pod.UID = types.UID(fmt.Sprintf("%016x%016x", draw.Uint64(), draw.Uint64()))
			pod.Status.Phase = corev1.PodPending
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			}}
			found = append(found, pod)
		}
	}
	return found
}

func names(pods []*corev1.Pod) []string {
	found := make([]string, 0, len(pods))
	for _, pod := range pods {
		found = append(found, pod.Name)
	}
	slices.SortFunc(found, strings.Compare)
	return found
}
