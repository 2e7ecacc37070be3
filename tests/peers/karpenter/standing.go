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
	byPool map[string][]*cloudprovider.InstanceType
}

func (c catalogue) GetInstanceTypes(_ context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return slices.Clone(c.byPool[pool.Name]), nil
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
	cloud := catalogue{byPool: map[string][]*cloudprovider.InstanceType{pool.Name: types}}
	return newStandingOf(problem, cloud, []*v1.NodePool{pool}, exotic, listed)
}

// newStandingOf is a cluster of these pools; the problem gives the options only.
func newStandingOf(
	problem Problem, cloud catalogue, pools []*v1.NodePool, exotic map[string]bool, listed bool,
) *standing {
	s := &standing{
		ctx: withOptions(problem), cloud: cloud, pools: pools, exotic: exotic, listed: listed,
		events: events.NewRecorder(&record.FakeRecorder{}), machines: map[string]*machine{},
	}
	objects := []client.Object{}
	for _, pool := range pools {
		objects = append(objects, pool)
	}
	s.kube = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
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

// launch makes a node of an offering for a pool, ready at once, with its NodeClaim; returns its name.
func (s *standing) launch(pool *v1.NodePool, asked map[string]string, option Option) string {
	s.launched++
	name := fmt.Sprintf("node-%06d", s.launched)
	kind := s.kind(pool, option.InstanceType)
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
	for key, value := range asked {
		if _, has := labels[key]; !has {
			labels[key] = value
		}
	}
	meta := metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.Now()}
	provider := "peers:///" + name
	node := &corev1.Node{
		ObjectMeta: meta, Spec: corev1.NodeSpec{ProviderID: provider, Taints: pool.Spec.Template.Spec.Taints},
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
	options := launched(claim, s.exotic).Options
	pool := s.pools[slices.IndexFunc(s.pools, func(p *v1.NodePool) bool { return p.Name == claim.NodePoolName })]
	s.place(s.launch(pool, claim.ToNodeClaim().Labels, options[0]), claim.Pods...)
}

// kind is an instance type as a pool's EC2NodeClass makes it.
func (s *standing) kind(pool *v1.NodePool, name string) *cloudprovider.InstanceType {
	kinds := s.cloud.byPool[pool.Name]
	return kinds[slices.IndexFunc(kinds, func(t *cloudprovider.InstanceType) bool { return t.Name == name })]
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
