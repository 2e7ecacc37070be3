package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
)

// mostChanges is more than any cluster needs.
const mostChanges = 500

// Change is one command of Karpenter's consolidation.
type Change struct {
	Method      string `json:"method"`
	Removed     int    `json:"removed"`
	Launched    int    `json:"launched"`
	Moved       int    `json:"moved"`
	PriceMicros int64  `json:"priceMicros"`
}

// Consolidated is the cluster once Karpenter finds nothing more to change.
type Consolidated struct {
	Nodes   []Node   `json:"nodes"`
	Changes []Change `json:"changes"`
	// CPUMillis is the time of all decisions together, without carrying them out.
	CPUMillis float64 `json:"cpuMillis"`
}

// consolidate starts what the problem says, and carries out what emptiness, multi-node and
// single-node consolidation ask for, in their order, until none asks for anything.
func consolidate(problem Problem, seed int64) Consolidated {
	s := newStanding(problem, true)
	byName := map[string]*corev1.Pod{}
	for _, pod := range problem.pods(seed) {
		byName[pod.Name] = pod
	}
	for _, node := range problem.Standing {
		name := s.launch(s.pools[0], nil, node.Options[0])
		for _, pod := range node.Pods {
			s.place(name, byName[pod])
		}
	}
	provisioner := provisioning.NewProvisioner(s.kube, s.events, s.cloud, s.state, s.clock, nil, nil)
	queue := disruption.NewQueue(s.kube, s.events, s.state, s.clock, provisioner)
	base := disruption.MakeConsolidation(s.clock, s.state, s.kube, provisioner, s.cloud, s.events, queue)
	methods := []disruption.Method{
		disruption.NewEmptiness(base), disruption.NewMultiNodeConsolidation(base), disruption.NewSingleNodeConsolidation(base),
	}
	made := Consolidated{Changes: []Change{}}
	var took time.Duration
	for len(made.Changes) < mostChanges {
		began := cpuTime()
		commands, method := s.commands(methods, queue)
		took += cpuTime() - began
		if len(commands) == 0 {
			break
		}
		for _, command := range commands {
			made.Changes = append(made.Changes, s.carryOut(command, method))
		}
	}
	made.CPUMillis, made.Nodes = milliseconds(took), s.nodes()
	return made
}

// commands returns what the first method that finds anything asks for. All nodes may be changed at
// once, which is the best case: Karpenter's default budget is a tenth of them.
func (s *standing) commands(methods []disruption.Method, queue *disruption.Queue) ([]disruption.Command, string) {
	for _, method := range methods {
		found, err := disruption.GetCandidates(
			s.ctx, s.state, s.kube, s.events, s.clock, s.cloud, method.ShouldDisrupt, method.Class(), queue,
		)
		check(err)
		if len(found) == 0 {
			continue
		}
		commands, err := method.ComputeCommands(s.ctx, map[string]int{s.pools[0].Name: len(s.machines)}, found...)
		check(err)
		asked := commands[:0]
		for _, command := range commands {
			if len(command.Candidates) > 0 {
				asked = append(asked, command)
			}
		}
		if len(asked) > 0 {
			return asked, fmt.Sprintf("%s %s", method.ConsolidationType(), method.Reason())
		}
	}
	return nil, ""
}

// carryOut starts the replacements, moves the pods and terminates the candidates of a command.
func (s *standing) carryOut(command disruption.Command, method string) Change {
	made := Change{Method: method, Removed: len(command.Candidates), Launched: len(command.Replacements)}
	for _, node := range command.Results.ExistingNodes {
		made.Moved += len(node.Pods)
		s.place(node.Name(), node.Pods...)
	}
	for _, replacement := range command.Replacements {
		made.Moved += len(replacement.NodeClaim.Pods)
		s.start(replacement.NodeClaim)
	}
	for _, candidate := range command.Candidates {
		s.terminate(candidate.Name())
	}
	made.PriceMicros = s.priceMicros()
	return made
}
