package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// Stream is the cluster once all pods have arrived, some at a time.
type Stream struct {
	Nodes   []Node            `json:"nodes"`
	LeftOut map[string]string `json:"leftOut"`
	Batches int               `json:"batches"`
	// CPUMillis is the time of all decisions together, without starting what they ask for.
	CPUMillis float64 `json:"cpuMillis"`
}

// stream decides for so many pods at a time, in the order of arrival. What is launched stays.
func stream(problem Problem, seed int64, batch int) Stream {
	s := newStanding(problem, false)
	byName := map[string]*corev1.Pod{}
	for _, pod := range problem.pods(seed) {
		byName[pod.Name] = pod
	}
	made := Stream{LeftOut: map[string]string{}}
	var took time.Duration
	for first := 0; first < len(problem.Arrivals); first += batch {
		var pods []*corev1.Pod
		for _, name := range problem.Arrivals[first:min(first+batch, len(problem.Arrivals))] {
			pods = append(pods, byName[name])
		}
		took += s.provision(pods, made.LeftOut)
		made.Batches++
	}
	made.Nodes, made.CPUMillis = s.nodes(), milliseconds(took)
	return made
}

// provision is one pass of Karpenter's provisioner; it returns the CPU time of the decision.
func (s *standing) provision(pods []*corev1.Pod, leftOut map[string]string) time.Duration {
	began := cpuTime()
	nodes := s.state.DeepCopyNodes().Active()
	results, err := solve(s.ctx, s.pools, s.cloud.byPool, s.state, nodes, s.kube, pods)
	check(err)
	took := cpuTime() - began
	for _, node := range results.ExistingNodes {
		s.place(node.Name(), node.Pods...)
	}
	for _, claim := range results.TruncateInstanceTypes(s.ctx, scheduling.MaxInstanceTypes).NewNodeClaims {
		s.start(claim)
	}
	for pod, reason := range results.PodErrors {
		leftOut[pod.Name] = reason.Error()
	}
	return took
}
