package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"
)

// catalogue is the part of a cloud provider that decisions ask.
type catalogue struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (c catalogue) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return slices.Clone(c.types), nil
}

func (c catalogue) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.TestNodeClass{}}
}

func (c catalogue) Name() string { return "catalogue" }

// impatient tells the time, and waits for nothing: before Karpenter acts it looks again after 15 s.
type impatient struct{ clock.RealClock }

func (impatient) After(time.Duration) <-chan time.Time { return time.After(0) }

// machine is a node that is ready, with the pods on it.
type machine struct {
	node   *corev1.Node
	claim  *v1.NodeClaim
	option Option
	pods   map[string]*corev1.Pod
}

// standing is a cluster with nodes: an API server's objects and what Karpenter knows of them.
type standing struct {
	ctx      context.Context
	clock    impatient
	kube     client.Client
	state    *state.Cluster
	cloud    catalogue
	events   events.Recorder
	pools    []*v1.NodePool
	types    map[string]*cloudprovider.InstanceType
	exotic   map[string]bool
	machines map[string]*machine
	launched int
	// listed says that pods and nodes are objects of the API server too. Consolidation lists them;
	// pods without rules between them are never listed, and a fake server takes long.
	listed bool
}

func newStanding(problem Problem, listed bool) *standing {
	types, exotic := problem.instanceTypes()
	pool := problem.Pool.DeepCopy()
	pool.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	s := &standing{
		ctx: withOptions(problem), cloud: catalogue{types: types}, pools: []*v1.NodePool{pool}, exotic: exotic,
		events: events.NewRecorder(&record.FakeRecorder{}), types: map[string]*cloudprovider.InstanceType{},
		machines: map[string]*machine{}, listed: listed,
	}
	for _, t := range types {
		s.types[t.Name] = t
	}
	s.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string {
			return []string{o.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(o client.Object) []string {
			return []string{o.(*v1.NodeClaim).Status.ProviderID}
		}).Build()
	s.state = state.NewCluster(s.clock, s.kube, s.cloud)
	return s
}

// launch makes a node of an offering that is ready at once, with its NodeClaim; returns its name.
func (s *standing) launch(option Option) string {
	s.launched++
	name := fmt.Sprintf("node-%06d", s.launched)
	pool, kind := s.pools[0], s.types[option.InstanceType]
	labels := map[string]string{
		v1.NodePoolLabelKey: pool.Name, corev1.LabelHostname: name, corev1.LabelTopologyZone: option.Zone,
		v1.CapacityTypeLabelKey: option.CapacityType, v1.NodeRegisteredLabelKey: "true",
		v1.NodeInitializedLabelKey: "true",
	}
	for key, requirement := range kind.Requirements {
		if _, has := labels[key]; !has && requirement.Operator() == corev1.NodeSelectorOpIn && requirement.Len() == 1 {
			labels[key] = requirement.Any()
		}
	}
	meta := metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.Now()}
	provider := "peers:///" + name
	node := &corev1.Node{
		ObjectMeta: meta, Spec: corev1.NodeSpec{ProviderID: provider},
		Status: corev1.NodeStatus{
			Capacity: kind.Capacity, Allocatable: kind.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	meta.UID = types.UID("claim-" + name)
	claim := &v1.NodeClaim{
		ObjectMeta: meta, Spec: v1.NodeClaimSpec{NodeClassRef: pool.Spec.Template.Spec.NodeClassRef},
		Status: v1.NodeClaimStatus{
			ProviderID: provider, NodeName: name, Capacity: kind.Capacity, Allocatable: kind.Allocatable(),
		},
	}
	for _, condition := range []string{
		v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized,
		v1.ConditionTypeConsolidatable,
	} {
		claim.StatusConditions().SetTrue(condition)
	}
	s.create(node.DeepCopy())
	s.create(claim.DeepCopy())
	s.state.UpdateNodeClaim(claim)
	check(s.state.UpdateNode(s.ctx, node))
	s.machines[name] = &machine{node: node, claim: claim, option: option, pods: map[string]*corev1.Pod{}}
	return name
}

// place runs pods on a node, wherever they ran before.
func (s *standing) place(name string, pods ...*corev1.Pod) {
	for _, waiting := range pods {
		pod := waiting.DeepCopy()
		if was := s.machines[pod.Spec.NodeName]; was != nil {
			delete(was.pods, pod.Name)
			s.delete(pod.DeepCopy())
		}
		pod.Spec.NodeName, pod.ResourceVersion = name, ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
		s.create(pod.DeepCopy())
		check(s.state.UpdatePod(s.ctx, pod))
		s.machines[name].pods[pod.Name] = pod
	}
}

// terminate removes a node that no pod is left on.
func (s *standing) terminate(name string) {
	m := s.machines[name]
	if len(m.pods) > 0 {
		check(fmt.Errorf("%s is terminated with %d pods on it", name, len(m.pods)))
	}
	s.delete(m.node.DeepCopy())
	s.delete(m.claim.DeepCopy())
	s.state.DeleteNode(name)
	s.state.DeleteNodeClaim(name)
	delete(s.machines, name)
}

func (s *standing) create(object client.Object) {
	if s.listed {
		check(s.kube.Create(s.ctx, object))
	}
}

func (s *standing) delete(object client.Object) {
	if s.listed {
		check(s.kube.Delete(s.ctx, object))
	}
}

// start launches what a NodeClaim asks for, and runs its pods there.
func (s *standing) start(claim *scheduling.NodeClaim) {
	s.place(s.launch(launched(claim, s.exotic).Options[0]), claim.Pods...)
}

// priceMicros returns what all nodes cost in an hour, in millionths of a dollar.
func (s *standing) priceMicros() (sum int64) {
	for _, m := range s.machines {
		sum += m.option.PriceMicros
	}
	return sum
}

// nodes returns the nodes by name.
func (s *standing) nodes() []Node {
	found := []Node{}
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		m := s.machines[name]
		found = append(found, Node{Options: []Option{m.option}, Pods: slices.Sorted(maps.Keys(m.pods))})
	}
	return found
}
