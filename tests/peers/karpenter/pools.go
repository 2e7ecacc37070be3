package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/karpenter/pkg/apis"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	nodepoolutils "sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

// mostPasses is how often Karpenter plans for the pods that are left, at most.
const mostPasses = 30

// awsLabels are the labels that Karpenter's AWS provider adds to those that are well known.
// Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/v1/labels.go
var awsLabels = []string{
	"capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
	"instance-hypervisor", "instance-encryption-in-transit-supported", "instance-category",
	"instance-capability-flex", "instance-family", "instance-generation", "instance-size",
	"instance-local-nvme", "instance-cpu", "instance-cpu-manufacturer",
	"instance-cpu-sustained-clock-speed-mhz", "instance-memory", "instance-ebs-bandwidth",
	"instance-network-bandwidth", "instance-gpu-name", "instance-gpu-manufacturer",
	"instance-gpu-count", "instance-gpu-memory", "instance-accelerator-name",
	"instance-accelerator-manufacturer", "instance-accelerator-count", "instance-tenancy",
	"placement-group-id", "placement-group-partition",
}

// PoolsProblem is a file of NodePools as it was published, and pods for them.
type PoolsProblem struct {
	Pools []json.RawMessage `json:"pools"`
	// Types are the instance types of each pool's EC2NodeClass, by name of the pool.
	Types     map[string][]InstanceType `json:"types"`
	Workloads []Workload                `json:"workloads"`
}

// PoolNode is a node that was launched, with its labels.
type PoolNode struct {
	Labels map[string]string `json:"labels"`
	Pods   []string          `json:"pods"`
}

// PoolsAnswer is the cluster once Karpenter finds nothing more to launch for a workload.
type PoolsAnswer struct {
	Nodes   []PoolNode        `json:"nodes"`
	LeftOut map[string]string `json:"leftOut"`
}

// PoolsAnswers are those for each workload in a cluster of its own.
type PoolsAnswers struct {
	Workloads map[string]PoolsAnswer `json:"workloads"`
	// Refused are the pools that Karpenter does not use, and why.
	Refused map[string]string `json:"refused"`
}

func decidePools(problem PoolsProblem, seed int64) PoolsAnswers {
	for _, name := range awsLabels {
		v1.WellKnownLabels.Insert("karpenter.k8s.aws/" + name)
	}
	v1.WellKnownLabels.Insert("topology.k8s.aws/zone-id")
	v1.RestrictedLabelDomains.Insert("karpenter.k8s.aws")
	answers := PoolsAnswers{Workloads: map[string]PoolsAnswer{}, Refused: map[string]string{}}
	plain := Problem{PreferencePolicy: options.PreferencePolicyRespect}
	ctx := withOptions(plain)
	cloud := catalogue{byPool: map[string][]*cloudprovider.InstanceType{}}
	exotic := map[string]bool{}
	var pools []*v1.NodePool
	for _, raw := range problem.Pools {
		pool, err := readPool(raw)
		check(err)
		if err := pool.RuntimeValidate(ctx); err != nil {
			answers.Refused[pool.Name] = err.Error()
			continue
		}
		for _, t := range problem.Types[pool.Name] {
			maps.DeleteFunc(t.Labels, func(key, _ string) bool { return !v1.WellKnownLabels.Has(key) })
		}
		types, odd := Problem{Types: problem.Types[pool.Name]}.instanceTypes()
		cloud.byPool[pool.Name] = types
		maps.Copy(exotic, odd)
		pools = append(pools, pool)
	}
	nodepoolutils.OrderByWeight(pools)
	for _, workload := range problem.Workloads {
		plain.Workloads = []Workload{workload}
		s := newStandingOf(plain, cloud, pools, exotic, true)
		answers.Workloads[workload.Name] = s.decidePool(plain.pods(seed))
	}
	return answers
}

// decidePool plans, launches, and plans again for the pods that are left: within one pass Karpenter
// takes a new node to be the largest that it asks for, and so comes to a limit too early.
func (s *standing) decidePool(waiting []*corev1.Pod) PoolsAnswer {
	answer := PoolsAnswer{Nodes: []PoolNode{}}
	for range mostPasses {
		answer.LeftOut = map[string]string{}
		s.provision(waiting, answer.LeftOut)
		left := slices.DeleteFunc(slices.Clone(waiting), func(pod *corev1.Pod) bool {
			_, is := answer.LeftOut[pod.Name]
			return !is
		})
		if len(left) == 0 || len(left) == len(waiting) {
			break
		}
		waiting = left
	}
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		m := s.machines[name]
		answer.Nodes = append(answer.Nodes, PoolNode{Labels: m.node.Labels, Pods: slices.Sorted(maps.Keys(m.pods))})
	}
	return answer
}

// readPool returns a NodePool as an API server with Karpenter's definition keeps it: with the
// definition's defaults.
func readPool(raw json.RawMessage) (*v1.NodePool, error) {
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	for _, definition := range apis.CRDs {
		if definition.Spec.Names.Kind == "NodePool" {
			setDefaults(document, definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
		}
	}
	whole, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	pool := &v1.NodePool{}
	if err := json.Unmarshal(whole, pool); err != nil {
		return nil, fmt.Errorf("decoding, %w", err)
	}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	return pool, nil
}

// setDefaults fills in what a schema gives where a document says nothing, as an API server does.
func setDefaults(value any, schema *apiextensionsv1.JSONSchemaProps) {
	switch known := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			if given, has := known[name]; (!has || given == nil) && property.Default != nil {
				var made any
				check(json.Unmarshal(property.Default.Raw, &made))
				known[name] = made
			}
			if _, has := known[name]; has {
				setDefaults(known[name], &property)
			}
		}
	case []any:
		if schema.Items != nil && schema.Items.Schema != nil {
			for _, member := range known {
				setDefaults(member, schema.Items.Schema)
			}
		}
	}
}
