"""A Karpenter v1 in memory: its objects, and its controllers while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from functions.cli.migrate.node_claim_documents import decode_node_claim
from functions.cli.migrate.node_claims import TAG_EKS_CLUSTER, NodeClaim
from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from shared.model.errors import ConflictError
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.ports import NodeChange
from tests.fakes.cloud import FakeCloud
from tests.fakes.cluster import START, FakeCluster

_TERMINATION = keys.TERMINATION_FINALIZER
_GONE = ("shutting-down", "terminated")


@dataclass
class FakeKarpenter:
    """Implements functions.cli.migrate.karpenter.Karpenter; `reasons` say why it runs."""

    reasons: tuple[str, ...] = ()
    raws: dict[str, dict[str, Any]] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def running(self) -> tuple[str, ...]:
        return self.reasons

    def node_claims(self) -> tuple[NodeClaim, ...]:
        return tuple(decode_node_claim(self.raws[name]) for name in sorted(self.raws))

    def make_node_claim(self, document: Mapping[str, Any]) -> NodeClaim:
        name = document["metadata"]["name"]
        if name in self.raws:
            raise ConflictError(f"NodeClaim {name} exists")
        number = next(self._numbers)
        metadata = {**document["metadata"], "uid": f"uid-claim-{number}"}
        self.raws[name] = {**document, "metadata": metadata, "status": {}}
        self._written(name)
        return decode_node_claim(self.raws[name])

    def write_status(self, claim: NodeClaim, status: Mapping[str, Any]) -> None:
        self._as_read(claim)["status"] = dict(status)
        self._written(claim.name)

    def remove_finalizer(self, claim: NodeClaim) -> None:
        self._as_read(claim)["metadata"]["finalizers"] = list(claim.other_finalizers)
        self._written(claim.name)

    def delete_node_claim(self, claim: NodeClaim) -> None:
        if claim.name in self.raws:
            self._as_read(claim)
            self.delete(claim.name, START)

    def delete(self, name: str, now: datetime) -> None:
        """Delete as the API server does: what has a finalizer is only marked."""
        metadata = self.raws[name]["metadata"]
        if metadata.get("finalizers"):
            metadata.setdefault("deletionTimestamp", now.isoformat())
            self._written(name)
        else:
            del self.raws[name]

    def add_finalizer(self, name: str) -> None:
        metadata = self.raws[name]["metadata"]
        metadata["finalizers"] = [*metadata.get("finalizers", ()), _TERMINATION]
        self._written(name)

    def _as_read(self, claim: NodeClaim) -> dict[str, Any]:
        raw = self.raws.get(claim.name)
        if raw is None or raw["metadata"]["resourceVersion"] != claim.resource_version:
            raise ConflictError(f"NodeClaim {claim.name} was changed since it was read")
        return raw

    def _written(self, name: str) -> None:
        self.raws[name]["metadata"]["resourceVersion"] = str(next(self._numbers))


@dataclass
class FakeTags:
    """Implements functions.cli.migrate.karpenter.MachineTags over the EC2 in memory."""

    cloud: FakeCloud

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        self.cloud.ec2.instances[instance_id].tags.update(tags)

    def untag(self, instance_id: str, tag_keys: Sequence[str]) -> None:
        for key in tag_keys:
            self.cloud.ec2.instances[instance_id].tags.pop(key, None)


@dataclass
class KarpenterControllers:
    """What Karpenter does to machines, Nodes and NodeClaims from its start on.

    Each method is one controller of v1.14.1, as far as machines depend on it. `launched` names the
    NodeClaims for which it would have launched a machine.

    Source: the files that each method names, of github.com/kubernetes-sigs/karpenter ("core") and
    github.com/aws/karpenter-provider-aws ("aws"), both at v1.14.1 (2026-11).
    """

    cluster: FakeCluster
    cloud: FakeCloud
    karpenter: FakeKarpenter
    name: str
    launched: list[str] = field(default_factory=list)

    def run(self, rounds: int = 4) -> None:
        """Let all of them reconcile, often enough that one sees what another did."""
        for _ in range(rounds):
            self.lifecycle()
            self.collect_instances()
            self.collect_claims()
            self.terminate_nodes()
            self.collect_dependents()

    def lifecycle(self) -> None:
        """core: pkg/controllers/nodeclaim/lifecycle/controller.go, Reconcile and finalize."""
        for claim in self.karpenter.node_claims():
            if claim.deletion_at is not None:
                self._finalize(claim)
            elif not claim.is_finalized:
                self.karpenter.add_finalizer(claim.name)
            elif not claim.provider_id:
                # launch.go: Launched is not True.
                self.launched.append(claim.name)
                status = {"providerID": f"aws:///us-east-1a/i-launched-for-{claim.name}"}
                self.karpenter.raws[claim.name]["status"] = status

    def _finalize(self, claim: NodeClaim) -> None:
        if not claim.is_finalized:
            return
        nodes = [node for node in self.cluster.nodes() if node.provider_id == claim.provider_id]
        if claim.registered and nodes:
            for node in nodes:
                self.cluster.delete_node(node)
            return
        self._end(claim.provider_id)
        self.karpenter.remove_finalizer(claim)
        self.karpenter.delete(claim.name, self.cluster.now)

    def collect_instances(self) -> None:
        """aws: pkg/controllers/nodeclaim/garbagecollection/controller.go, Reconcile."""
        claimed = {claim.provider_id for claim in self.karpenter.node_claims()}
        now = self.cloud.clock.now()
        for instance in self._listed():
            old = instance.launched_at is not None and now - instance.launched_at > timedelta(
                seconds=30
            )
            if instance.provider_id not in claimed and old:
                self._end(instance.provider_id)
                for node in self.cluster.nodes():
                    if node.provider_id == instance.provider_id:
                        self.cluster.delete_node(node)

    def collect_claims(self) -> None:
        """core: pkg/controllers/nodeclaim/garbagecollection/controller.go, Reconcile."""
        listed = {instance.provider_id for instance in self._listed()}
        for claim in self.karpenter.node_claims():
            missing = claim.registered and claim.deletion_at is None
            if not missing or claim.provider_id in listed:
                continue
            nodes = [node for node in self.cluster.nodes() if node.provider_id == claim.provider_id]
            if not any(node.ready is True for node in nodes):
                self.karpenter.delete(claim.name, self.cluster.now)

    def terminate_nodes(self) -> None:
        """core: pkg/controllers/node/termination/controller.go, finalize; drains are done at once.

        A Node without a NodeClaim loses its finalizer, and its machine runs on.
        """
        by_machine = {claim.provider_id: claim for claim in self.karpenter.node_claims()}
        for node in self.cluster.nodes():
            if node.deletion_at is None or _TERMINATION not in node.finalizers:
                continue
            if keys.NODE_CLASS not in node.labels:
                continue
            claim = by_machine.get(node.provider_id)
            if claim is not None:
                if claim.deletion_at is None:
                    self.karpenter.delete(claim.name, self.cluster.now)
                self._end(claim.provider_id)
            kept = tuple(name for name in node.finalizers if name != _TERMINATION)
            self.cluster.change_node(node, NodeChange(finalizers=kept))

    def collect_dependents(self) -> None:
        """Kubernetes: what all owners of are gone is deleted.

        Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/ (2026-11).
        """
        known = {claim.uid for claim in self.karpenter.node_claims()}
        known |= {owner.uid for owner in self.cluster.provisioner_values.values()}
        for node in self.cluster.nodes():
            if node.owners and not known & {*node.owners}:
                self.cluster.delete_node(node)

    def _listed(self) -> list[Instance]:
        """aws: pkg/providers/instance/instance.go, List."""
        return [
            instance
            for instance in self.cloud.all_instances
            if keys.NODE_POOL in instance.tags
            and keys.NODE_CLASS in instance.tags
            and instance.tags.get(TAG_EKS_CLUSTER) == self.name
            and instance.state not in _GONE
        ]

    def _end(self, provider_id: str) -> None:
        """aws: pkg/cloudprovider/cloudprovider.go, Delete: by the id alone, whatever the tags."""
        instance_id = provider_id.rsplit("/", 1)[-1]
        if instance_id in self.cloud.ec2.instances:
            self.cloud.end(instance_id)


def node_of_karpenter(claim: NodeClaim, node: Node, node_class: str) -> Node:
    """Return a Node as Karpenter leaves it once it is registered.

    Source: core: pkg/controllers/nodeclaim/lifecycle/registration.go, syncNode (2026-11).
    """
    return replace(
        node,
        finalizers=(_TERMINATION,),
        owners=(claim.uid,),
        labels={
            **node.labels,
            keys.NODE_POOL: claim.node_pool,
            keys.NODE_CLASS: node_class,
            keys.REGISTERED: "true",
            keys.INITIALIZED: "true",
        },
    )
