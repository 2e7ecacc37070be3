"""What both sides are asked: the pods of some workloads, one pool, and what may be bought."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.instance_types.catalog import Catalog
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.resources import CPU, Resources
from shared.model.snapshot import ClusterSnapshot

Raw = Mapping[str, Any]
RESPECT: Final = "Respect"
IGNORE: Final = "Ignore"
_NAMESPACE: Final = "default"
_POOL: Final = "default"
_NODE_CLASS: Final = {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}
_EXOTIC_SIZE: Final = "metal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Pods of one template, named `NAME-0`, `NAME-1` and so on.

    Attributes:
        template: A Kubernetes PodTemplateSpec.
    """

    name: str
    replicas: int
    template: Raw

    @property
    def pods(self) -> Iterator[str]:
        """The names of its pods."""
        return (f"{self.name}-{number}" for number in range(self.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A decision that both sides are asked for.

    Attributes:
        requirements: Of the Provisioner and of the NodePool, NodeSelectorRequirements.
        instance_types: Their allocatable resources are what is left for these pods: there are no
            DaemonSets.
        preference_policy: Of Karpenter.
    """

    name: str
    workloads: tuple[Workload, ...]
    requirements: tuple[Raw, ...]
    instance_types: tuple[InstanceType, ...]
    preference_policy: str = RESPECT

    @property
    def pods(self) -> int:
        """How many pods wait."""
        return sum(workload.replicas for workload in self.workloads)

    def for_karpenter(self) -> dict[str, Any]:
        """Return the document that the Go program reads."""
        pool = {
            "metadata": {"name": _POOL, "uid": "pool-default"},
            "spec": {
                "template": {
                    "spec": {"requirements": list(self.requirements), "nodeClassRef": _NODE_CLASS}
                }
            },
        }
        return {
            "preferencePolicy": self.preference_policy,
            "pool": pool,
            "types": [type_for_karpenter(instance_type) for instance_type in self.instance_types],
            "workloads": [
                {"name": entry.name, "replicas": entry.replicas, "template": entry.template}
                for entry in self.workloads
            ],
        }

    def snapshot(self) -> ClusterSnapshot:
        """Return the cluster as the command line reads it from manifests."""
        catalog = Catalog(
            region="us-east-1",
            source="peers",
            date="2026-01-01",
            instance_types=self.instance_types,
        )
        provider = {"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}
        pool = {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": _POOL},
            "spec": {"requirements": list(self.requirements), "provider": provider},
        }
        documents = [Document(where="pool", raw=pool)]
        documents += [
            Document(where=workload.name, raw=deployment(workload)) for workload in self.workloads
        ]
        return read_snapshot(documents, catalog).snapshot


def deployment(workload: Workload) -> Raw:
    """Return the Deployment of a workload."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name, "namespace": _NAMESPACE},
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": workload.template["metadata"]["labels"]},
            "template": workload.template,
        },
    }


def type_for_karpenter(instance_type: InstanceType) -> Raw:
    """Return an instance type as the Go program reads it."""
    size = instance_type.labels.get(keys.INSTANCE_SIZE, "")
    accelerated = keys.INSTANCE_GPU_NAME in instance_type.labels
    return {
        "name": instance_type.name,
        "labels": dict(instance_type.labels),
        "allocatable": quantities(instance_type.allocatable),
        "exotic": accelerated or size.startswith(_EXOTIC_SIZE),
        "offerings": [
            {
                "zone": offering.zone,
                "capacityType": offering.capacity_type.value,
                "priceMicros": offering.price_micros_per_hour,
            }
            for offering in instance_type.offerings
        ],
    }


def quantities(resources: Resources) -> dict[str, str]:
    """Return resources as Kubernetes writes them."""
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in resources.items}
