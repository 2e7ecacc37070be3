package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"
)

type kubeClient = client.Client

// cloud answers the questions that scheduling and consolidation ask a cloud provider.
type cloud struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (c cloud) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return slices.Clone(c.types), nil
}

func (cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.TestNodeClass{}}
}

func (cloud) Name() string { return "peers" }

// impatient is a clock on which no time passes between a consolidation and its validation.
type impatient struct{ clock.RealClock }

func (impatient) After(time.Duration) <-chan time.Time { return time.After(0) }

// cluster is what Karpenter knows of a running cluster: objects of the API, and its own state.
type cluster struct {
	ctx      context.Context
	clock    impatient
	client   kubeClient
	cloud    cloud
	state    *state.Cluster
	pool     *v1.NodePool
	exotic   map[string]bool
	machines map[string]*machine
	launches int
}

// machine is a node that was bought, and the pods on it.
type machine struct {
	node  *corev1.Node
	claim *v1.NodeClaim
	price int64
	pods  map[string]*corev1.Pod
}

func newCluster(problem Problem) *cluster {
	found, exotic := problem.instanceTypes()
	pool := problem.Pool.DeepCopy()
	pool.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	c := &cluster{
		ctx: withOptions(problem), cloud: cloud{types: found}, pool: pool, exotic: exotic,
		machines: map[string]*machine{},
	}
	c.client = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool).
		WithIndex(&corev1.Pod{}, "spec.nodeName", indexed(func(o *corev1.Pod) string { return o.Spec.NodeName })).
		WithIndex(&corev1.Node{}, "spec.providerID", indexed(func(o *corev1.Node) string { return o.Spec.ProviderID })).
		WithIndex(&v1.NodeClaim{}, "status.providerID", indexed(func(o *v1.NodeClaim) string { return o.Status.ProviderID })).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName",
			indexed(func(o *storagev1.VolumeAttachment) string { return o.Spec.NodeName })).
		Build()
	c.state = state.NewCluster(c.clock, c.client, c.cloud)
	return c
}

func indexed[T client.Object](field func(T) string) client.IndexerFunc {
	return func(o client.Object) []string { return []string{field(o.(T))} }
}

// launch adds a ready node of an offering and returns its name.
func (c *cluster) launch(option Option) string {
	c.launches++
	name := fmt.Sprintf("node-%06d", c.launches)
	at := slices.IndexFunc(c.cloud.types, func(t *cloudprovider.InstanceType) bool { return t.Name == option.InstanceType })
	instanceType := c.cloud.types[at]
	labels := map[string]string{
		v1.NodePoolLabelKey: c.pool.Name, v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true",
		corev1.LabelHostname: name, corev1.LabelTopologyZone: option.Zone, v1.CapacityTypeLabelKey: option.CapacityType,
	}
	for key, requirement := range instanceType.Requirements {
		if _, given := labels[key]; !given && requirement.Operator() == corev1.NodeSelectorOpIn {
			labels[key] = requirement.Any()
		}
	}
	meta := func(uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID(uid + name), Labels: labels, CreationTimestamp: metav1.Now()}
	}
	provider := "peers:///" + name
	node := &corev1.Node{
		ObjectMeta: meta("node/"), Spec: corev1.NodeSpec{ProviderID: provider},
		Status: corev1.NodeStatus{
			Capacity: instanceType.Capacity, Allocatable: instanceType.Allocatable(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	claim := &v1.NodeClaim{
		ObjectMeta: meta("claim/"), Spec: v1.NodeClaimSpec{NodeClassRef: c.pool.Spec.Template.Spec.NodeClassRef},
		Status: v1.NodeClaimStatus{
			ProviderID: provider, NodeName: name,
			Capacity: instanceType.Capacity, Allocatable: instanceType.Allocatable(),
		},
	}
	for _, condition := range []string{
		v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized, v1.ConditionTypeConsolidatable,
	} {
		claim.StatusConditions().SetTrue(condition)
	}
	check(c.client.Create(c.ctx, node.DeepCopy()))
	check(c.client.Create(c.ctx, claim.DeepCopy()))
	c.state.UpdateNodeClaim(claim)
	check(c.state.UpdateNode(c.ctx, node))
	c.machines[name] = &machine{node: node, claim: claim, price: option.PriceMicros, pods: map[string]*corev1.Pod{}}
	return name
}

// bind puts pods on a node, and takes them from the one they were on.
func (c *cluster) bind(name string, pods []*corev1.Pod) {
	for _, pod := range pods {
		pod = pod.DeepCopy()
		if old := pod.Spec.NodeName; old != "" {
			check(c.client.Delete(c.ctx, pod.DeepCopy()))
			if from := c.machines[old]; from != nil {
				delete(from.pods, pod.Name)
			}
		}
		pod.ResourceVersion = ""
		pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions = name, corev1.PodRunning, nil
		check(c.client.Create(c.ctx, pod.DeepCopy()))
		check(c.state.UpdatePod(c.ctx, pod))
		c.machines[name].pods[pod.Name] = pod
	}
}

// remove ends a node whose pods are elsewhere by now.
func (c *cluster) remove(name string) {
	gone := c.machines[name]
	if len(gone.pods) > 0 {
		fail(fmt.Errorf("%s is removed with %d pods on it", name, len(gone.pods)))
	}
	check(c.client.Delete(c.ctx, gone.node))
	check(c.client.Delete(c.ctx, gone.claim))
	c.state.DeleteNode(name)
	c.state.DeleteNodeClaim(name)
	delete(c.machines, name)
}

func (c *cluster) price() (sum int64) {
	for _, m := range c.machines {
		sum += m.price
	}
	return sum
}

// nodes returns what runs, for the judge.
func (c *cluster) nodes() []Node {
	found := []Node{}
	for _, m := range c.machines {
		var pods []*corev1.Pod
		for _, pod := range m.pods {
			pods = append(pods, pod)
		}
		option := Option{m.node.Labels[corev1.LabelInstanceTypeStable], Offering{
			m.node.Labels[corev1.LabelTopologyZone], m.node.Labels[v1.CapacityTypeLabelKey], m.price,
		}}
		found = append(found, Node{Options: []Option{option}, Pods: names(pods)})
	}
	return found
}
