package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/utils/resources"
)

// refusedFor is how long Karpenter's AWS provider does not ask for what EC2 had none of.
// Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/cache/cache.go
const refusedFor = 3 * time.Minute

// cloud is a cloud provider whose instances are the world's. The store's mutex guards it.
type cloud struct {
	world *world
	// types are the instance types while nothing is refused, offered those of now.
	types, offered []*cloudprovider.InstanceType
	exotic         map[string]bool
	// refused says until when an option without its price is not offered.
	refused map[Option]time.Time
	// claims are what became of the NodeClaims, by ID of the instance.
	claims map[string]*v1.NodeClaim
}

// Create launches the cheapest of what a NodeClaim asks for.
func (c *cloud) Create(_ context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	c.world.store.mutex.Lock()
	defer c.world.store.mutex.Unlock()
	asked := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	wanted := slices.DeleteFunc(c.instanceTypes(), func(t *cloudprovider.InstanceType) bool {
		return asked.Compatible(t.Requirements, scheduling.AllowUndefinedWellKnownLabels) != nil ||
			!resources.Fits(claim.Spec.Resources.Requests, t.Allocatable())
	})
	options := cheapest(wanted, asked, c.exotic)
	if len(options) == 0 {
		return nil, cloudprovider.NewInsufficientCapacityError(errors.New("nothing that is asked for is offered"))
	}
	got := c.world.ask("launch", fields{
		"claim": claim.Name, "labels": claim.Labels, "annotations": claim.Annotations,
		"taints": claim.Spec.Taints, "startupTaints": claim.Spec.StartupTaints, "options": options,
	})
	for _, option := range got.Refused {
		option.PriceMicros = 0
		c.refused[option] = time.Now().Add(refusedFor)
		c.offered = nil
	}
	if got.InstanceID == "" {
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("%d options are refused", len(got.Refused)))
	}
	kind := c.types[slices.IndexFunc(c.types, func(t *cloudprovider.InstanceType) bool { return t.Name == got.InstanceType })]
	made := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: map[string]string{}, CreationTimestamp: metav1.Now()},
		Status: v1.NodeClaimStatus{
			ProviderID: "aws:///" + got.Zone + "/" + got.InstanceID, Capacity: kind.Capacity, Allocatable: kind.Allocatable(),
		},
	}
	for key, requirement := range kind.Requirements {
		if requirement.Operator() == corev1.NodeSelectorOpIn && requirement.Len() == 1 {
			made.Labels[key] = requirement.Any()
		}
	}
	made.Labels[corev1.LabelTopologyZone], made.Labels[v1.CapacityTypeLabelKey] = got.Zone, got.CapacityType
	c.claims[got.InstanceID] = made
	return made.DeepCopy(), nil
}

// Delete terminates an instance; it is an error once it is terminated.
func (c *cloud) Delete(_ context.Context, claim *v1.NodeClaim) error {
	c.world.store.mutex.Lock()
	defer c.world.store.mutex.Unlock()
	_, err := c.ask("terminate", path.Base(claim.Status.ProviderID))
	return err
}

func (c *cloud) Get(_ context.Context, providerID string) (*v1.NodeClaim, error) {
	c.world.store.mutex.Lock()
	defer c.world.store.mutex.Unlock()
	return c.ask("instance", path.Base(providerID))
}

func (c *cloud) List(context.Context) ([]*v1.NodeClaim, error) {
	c.world.store.mutex.Lock()
	defer c.world.store.mutex.Unlock()
	var found []*v1.NodeClaim
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		if claim, err := c.ask("instance", id); err == nil {
			found = append(found, claim)
		}
	}
	return found, nil
}

// ask asks about an instance and returns what it is unless it is terminated.
func (c *cloud) ask(do, id string) (*v1.NodeClaim, error) {
	claim := c.claims[id]
	if claim != nil {
		switch state := c.world.ask(do, fields{"instanceId": id}).State; state {
		case "pending", "running":
			return claim.DeepCopy(), nil
		case "shutting-down":
			dying := claim.DeepCopy()
			now := metav1.Now()
			dying.DeletionTimestamp = &now
			return dying, nil
		case "terminated":
			delete(c.claims, id)
		default:
			fail(fmt.Errorf("%s %s: its state is %q", do, id, state))
		}
	}
	return nil, cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("%s is no instance", id))
}

func (c *cloud) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	c.world.store.mutex.Lock()
	defer c.world.store.mutex.Unlock()
	return c.instanceTypes(), nil
}

// instanceTypes returns all types; what was refused lately is not available.
func (c *cloud) instanceTypes() []*cloudprovider.InstanceType {
	before := len(c.refused)
	maps.DeleteFunc(c.refused, func(_ Option, until time.Time) bool { return !time.Now().Before(until) })
	if c.offered == nil || len(c.refused) < before {
		c.offered = nil
		for _, t := range c.types {
			made := &cloudprovider.InstanceType{}
			t.DeepCopyInto(made)
			for _, o := range made.Offerings {
				_, refused := c.refused[Option{t.Name, Offering{Zone: o.Zone(), CapacityType: o.CapacityType()}}]
				o.Available = !refused
			}
			c.offered = append(c.offered, made)
		}
	}
	return slices.Clone(c.offered)
}

func (c *cloud) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}

func (c *cloud) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

func (c *cloud) Name() string { return "world" }

func (c *cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.TestNodeClass{}}
}
