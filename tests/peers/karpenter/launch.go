package main

import (
	"cmp"
	"math"
	"slices"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	requirements "sigs.k8s.io/karpenter/pkg/scheduling"
)

// mostTypes is how many instance types Karpenter's AWS provider names in a request.
// Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.0/pkg/providers/instance/instance.go
const mostTypes = 60

// Option is an offering that a request names.
type Option struct {
	InstanceType string `json:"instanceType"`
	Offering
}

// Node is a machine that Karpenter launches. The first option is the one that it gets.
type Node struct {
	Options []Option `json:"options"`
	Pods    []string `json:"pods"`
}

// launched returns what the AWS provider makes of a NodeClaim. What EC2 gives is taken to be the
// cheapest option, which is the best case for spot.
func launched(claim *scheduling.NodeClaim, exotic map[string]bool) Node {
	return Node{
		Options: cheapest(claim.InstanceTypeOptions, claim.Requirements, exotic), Pods: names(claim.Pods),
	}
}

// cheapest returns what the AWS provider names in a request: exotic types are dropped if anything
// else is left, spot is taken if any type offers it, the cheapest types are named.
func cheapest(
	wanted []*cloudprovider.InstanceType, asked requirements.Requirements, exotic map[string]bool,
) []Option {
	usual := slices.DeleteFunc(slices.Clone(wanted), func(t *cloudprovider.InstanceType) bool { return exotic[t.Name] })
	if len(usual) > 0 {
		wanted = usual
	}
	spot, dearest := false, math.MaxFloat64
	for _, t := range wanted {
		for _, o := range t.Offerings.Available().Compatible(asked) {
			if o.CapacityType() == v1.CapacityTypeSpot {
				spot = true
			} else {
				dearest = min(dearest, o.Price)
			}
		}
	}
	var byType [][]Option
	for _, t := range wanted {
		var options []Option
		for _, o := range t.Offerings.Available().Compatible(asked) {
			isSpot := o.CapacityType() == v1.CapacityTypeSpot
			if isSpot == spot && (!spot || o.Price <= dearest) {
				micros := int64(math.Round(o.Price * 1e6))
				options = append(options, Option{t.Name, Offering{o.Zone(), o.CapacityType(), micros}})
			}
		}
		if len(options) > 0 {
			slices.SortFunc(options, cheapestFirst)
			byType = append(byType, options)
		}
	}
	slices.SortStableFunc(byType, func(a, b []Option) int { return cheapestFirst(a[0], b[0]) })
	options := slices.Concat(byType[:min(len(byType), mostTypes)]...)
	slices.SortStableFunc(options, cheapestFirst)
	return options
}

func cheapestFirst(a, b Option) int {
	return cmp.Or(
		cmp.Compare(a.PriceMicros, b.PriceMicros),
		cmp.Compare(a.InstanceType, b.InstanceType),
		cmp.Compare(a.Zone, b.Zone),
	)
}
