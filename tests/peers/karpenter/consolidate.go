package main

import (
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/events"
)

// mostRounds ends a consolidation that would not end by itself.
const mostRounds = 500

// Change is one consolidation that was carried out.
type Change struct {
	Method      string `json:"method"`
	Removed     int    `json:"removed"`
	Launched    int    `json:"launched"`
	Moved       int    `json:"moved"`
	PriceMicros int64  `json:"priceMicros"` // of all nodes afterwards
}

// Consolidated is what runs once Karpenter finds nothing to improve.
type Consolidated struct {
	Nodes     []Node   `json:"nodes"`
	Changes   []Change `json:"changes"`
	CPUMillis float64  `json:"cpuMillis"`
}

// consolidate begins with the nodes of a file, the first option of each bought, and lets
// Karpenter's own methods run in their order until none finds anything. The disruption budget is
// all nodes, the best case.
func consolidate(problem Problem, seed int64, path string) Consolidated {
	text, err := os.ReadFile(path)
	check(err)
	var begin []Node
	check(json.Unmarshal(text, &begin))
	byName := map[string]*corev1.Pod{}
	for _, pod := range problem.pods(seed) {
		byName[pod.Name] = pod
	}
	c := newCluster(problem)
	for _, node := range begin {
		var pods []*corev1.Pod
		for _, name := range node.Pods {
			pods = append(pods, byName[name])
		}
		c.bind(c.launch(node.Options[0]), pods)
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	provisioner := provisioning.NewProvisioner(c.client, recorder, c.cloud, c.state, c.clock, nil, nil)
	queue := disruption.NewQueue(c.client, recorder, c.state, c.clock, provisioner)
	made := disruption.MakeConsolidation(c.clock, c.state, c.client, provisioner, c.cloud, recorder, queue)
	methods := []disruption.Method{
		disruption.NewEmptiness(made), disruption.NewMultiNodeConsolidation(made), disruption.NewSingleNodeConsolidation(made),
	}
	found := Consolidated{Changes: []Change{}}
	began := cpuTime()
	for range mostRounds {
		if !c.improve(methods, recorder, queue, &found) {
			break
		}
	}
	found.CPUMillis = milliseconds(cpuTime() - began)
	found.Nodes = c.nodes()
	return found
}

// improve carries out what the first method that finds anything says.
func (c *cluster) improve(
	methods []disruption.Method, recorder events.Recorder, queue *disruption.Queue, found *Consolidated,
) bool {
	for _, method := range methods {
		candidates, err := disruption.GetCandidates(
			c.ctx, c.state, c.client, recorder, c.clock, c.cloud, method.ShouldDisrupt, method.Class(), queue,
		)
		check(err)
		if len(candidates) == 0 {
			continue
		}
		budget := map[string]int{c.pool.Name: len(c.machines)}
		commands, err := method.ComputeCommands(c.ctx, budget, candidates...)
		check(err)
		changed := false
		for _, command := range commands {
			if len(command.Candidates) > 0 {
				found.Changes = append(found.Changes, c.apply(command, method))
				changed = true
			}
		}
		if changed {
			return true
		}
	}
	return false
}

func (c *cluster) apply(command disruption.Command, method disruption.Method) Change {
	change := Change{
		Method: string(method.Reason()) + "/" + method.ConsolidationType(), Removed: len(command.Candidates),
		Launched: len(command.Replacements),
	}
	for _, existing := range command.Results.ExistingNodes {
		change.Moved += len(existing.Pods)
		c.bind(existing.Node.Name, existing.Pods)
	}
	for _, replacement := range command.Replacements {
		change.Moved += len(replacement.NodeClaim.Pods)
		c.bind(c.launch(launched(replacement.NodeClaim, c.exotic).Options[0]), replacement.NodeClaim.Pods)
	}
	for _, candidate := range command.Candidates {
		c.remove(candidate.Name())
	}
	change.PriceMicros = c.price()
	return change
}
