package main

import (
	"math/rand"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Stream is what ran once all pods had arrived, some at a time.
type Stream struct {
	Nodes     []Node  `json:"nodes"`
	LeftOut   int     `json:"leftOut"`
	Batches   int     `json:"batches"`
	CPUMillis float64 `json:"cpuMillis"` // of all decisions
}

// stream lets pods arrive in an order drawn by the seed. What was launched for a batch is ready
// before the next one comes.
func stream(problem Problem, seed int64, size int) Stream {
	pods := problem.pods(seed)
	rand.New(rand.NewSource(seed)).Shuffle(len(pods), func(a, b int) { pods[a], pods[b] = pods[b], pods[a] })
	c := newCluster(problem)
	found := Stream{}
	for len(pods) > 0 {
		batch := pods[:min(size, len(pods))]
		pods = pods[len(batch):]
		began := cpuTime()
		nodes := c.state.DeepCopyNodes().Active()
		results, err := solve(c.ctx, []*v1.NodePool{c.pool}, c.cloud.types, c.state, c.client, nodes, batch)
		check(err)
		found.CPUMillis += milliseconds(cpuTime() - began)
		for _, existing := range results.ExistingNodes {
			c.bind(existing.Node.Name, existing.Pods)
		}
		for _, claim := range results.NewNodeClaims {
			c.bind(c.launch(launched(claim, c.exotic).Options[0]), claim.Pods)
		}
		found.LeftOut += len(results.PodErrors)
		found.Batches++
	}
	found.Nodes = c.nodes()
	return found
}
