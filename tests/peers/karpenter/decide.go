package main

import (
	"context"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// solveLimit is the time that Karpenter's provisioner gives its scheduler.
const solveLimit = time.Minute

// noCloud is asked nothing by a decision for an empty cluster.
type noCloud struct{ cloudprovider.CloudProvider }

// Decision is one answer to all pods at once.
type Decision struct {
	Nodes   []Node            `json:"nodes"`
	LeftOut map[string]string `json:"leftOut"`
	// CPUMillis is the time of all threads from building the topology until the nodes are known.
	CPUMillis float64 `json:"cpuMillis"`
	CutShort  bool    `json:"cutShort"`
}

// Decisions are those of several runs in one process.
type Decisions struct {
	Decisions     []Decision `json:"decisions"`
	PeakMebibytes float64    `json:"peakMebibytes"`
}

func decideOften(problem Problem, seed int64, repetitions int) Decisions {
	types, exotic := problem.instanceTypes()
	found := Decisions{}
	for i := range repetitions {
		found.Decisions = append(found.Decisions, decide(problem, types, exotic, problem.pods(seed+int64(i))))
	}
	found.PeakMebibytes = peakMebibytes()
	return found
}

func decide(
	problem Problem, types []*cloudprovider.InstanceType, exotic map[string]bool, pods []*corev1.Pod,
) Decision {
	ctx := withOptions(problem)
	kube := fake.NewFakeClient()
	cluster := state.NewCluster(clock.RealClock{}, kube, noCloud{})
	pools := []*v1.NodePool{problem.Pool.DeepCopy()}
	runtime.GC()
	began := cpuTime()
	limited, cancel := context.WithTimeout(ctx, solveLimit)
	defer cancel()
	byPool := map[string][]*cloudprovider.InstanceType{problem.Pool.Name: types}
	results, err := solve(limited, pools, byPool, cluster, nil, kube, pods)
	took := cpuTime() - began
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	made := Decision{
		Nodes: []Node{}, LeftOut: map[string]string{}, CPUMillis: milliseconds(took), CutShort: err != nil,
	}
	placed := map[string]bool{}
	for _, claim := range results.NewNodeClaims {
		node := launched(claim, exotic)
		made.Nodes = append(made.Nodes, node)
		for _, name := range node.Pods {
			placed[name] = true
		}
	}
	for _, pod := range pods {
		if !placed[pod.Name] {
			made.LeftOut[pod.Name] = "not reached"
		}
	}
	for pod, reason := range results.PodErrors {
		made.LeftOut[pod.Name] = reason.Error()
	}
	return made
}

// solve asks the scheduler as Karpenter's provisioner does. The nodes are those that stand.
func solve(
	ctx context.Context, pools []*v1.NodePool, byPool map[string][]*cloudprovider.InstanceType,
	cluster *state.Cluster, nodes state.StateNodes, kube client.Client, pods []*corev1.Pod,
) (scheduling.Results, error) {
	// One worker was faster than five when both were measured.
	chosen := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(1),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	if options.FromContext(ctx).PreferencePolicy == options.PreferencePolicyIgnore {
		chosen = append(chosen, scheduling.IgnorePreferences)
	}
	topology, err := scheduling.NewTopology(ctx, kube, cluster, nodes, pools, byPool, pods, chosen...)
	check(err)
	scheduler := scheduling.NewScheduler(
		ctx, kube, pools, cluster, nodes, topology, byPool, nil,
		events.NewRecorder(&record.FakeRecorder{}), clock.RealClock{}, nil, nil, chosen...,
	)
	return scheduler.Solve(ctx, pods)
}

func withOptions(problem Problem) context.Context {
	return options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		CPURequests: 1000, PreferencePolicy: problem.PreferencePolicy,
		MinValuesPolicy: options.MinValuesPolicyStrict, IgnoreDRARequests: true,
		BatchIdleDuration: time.Second, BatchMaxDuration: 10 * time.Second,
		FeatureGates: options.FeatureGates{ReservedCapacity: true},
	})
}
