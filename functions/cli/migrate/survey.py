"""What a migration finds in a cluster: the nodes that can change hands, pool by pool."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from functions.cli.migrate.handover import (
    Direction,
    Handover,
    karpenter_tags_of,
    next_step,
    why_not,
)
from functions.cli.migrate.karpenter import Karpenter
from functions.cli.migrate.node_claim_documents import read_kept_claim
from functions.cli.migrate.node_claims import NodeClaim
from shared.disruption.drift import format_age
from shared.manifests.spans import read_span
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import Instance, Slot
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.nodes.launch.slots import price_of
from shared.ports import ClusterPorts
from shared.provisioning.savings.purchases import Tally
from shared.provisioning.shadow_purchases import tally_of


class SurveyedNode(Struct, frozen=True, kw_only=True):
    """One node of the survey.

    Attributes:
        node_pool: Name of its NodePool, empty when it has none.
        node: Its name; for a NodeClaim without a Node, the name of the NodeClaim.
        instance_type: Empty when EC2 does not know the instance.
        price_micros_per_hour: 0 when it is not known.
        refusal: Why it does not change hands, with the remedy; empty when it may.
        done: Whether it has changed hands already.
    """

    node_pool: str
    node: str
    instance_id: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price_micros_per_hour: int = 0
    refusal: str = ""
    done: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it can change hands and has not yet."""
        return not self.done and not self.refusal


class MigrationSurvey(Struct, frozen=True, kw_only=True):
    """The survey of a cluster.

    Attributes:
        running: Signs that Karpenter runs or may run; no node changes hands until it is stopped.
        rows: Sorted by NodePool and name.
        tally: What Karpenter bought in shadow mode beside what Dovetail would have bought; None
            where nothing was compared.
    """

    cluster: str
    direction: Direction
    running: tuple[str, ...]
    rows: tuple[SurveyedNode, ...]
    tally: Tally | None = None


class _ClusterObjects(Struct, frozen=True, kw_only=True):
    """Objects of the cluster, read once for all its nodes."""

    nodes: tuple[Node, ...]
    claims: tuple[NodeClaim, ...]
    usable: Mapping[str, Provisioner]
    unusable: Mapping[str, str]
    slots: Mapping[str, Slot]


class Surveyor:
    """Reads which nodes can change hands; changes nothing.

    Args:
        ports: Ports of the cluster.
        karpenter: Karpenter's objects in the cluster.
    """

    def __init__(self, ports: ClusterPorts, karpenter: Karpenter) -> None:
        self._ports = ports
        self._karpenter = karpenter

    def survey(self, direction: Direction) -> MigrationSurvey:
        """Return the nodes that Karpenter launched and, for a hand-back, those of Dovetail.

        Raises:
            NotInstalledError: If the cluster does not define NodeClaims.
        """
        found = self._read()
        candidates = [node for node in found.nodes if _is_candidate(node, found.claims, direction)]
        instances = self._instances(candidates)
        types = {entry.name: entry for entry in self._ports.catalog.instance_types()}
        rows = [
            self._row(
                self._handover(node, found, instances.get(node.instance_id)), direction, types
            )
            for node in candidates
        ]
        if direction == Direction.TAKE_OVER:
            rows += _without_node(found)
        return MigrationSurvey(
            cluster=self._ports.cluster.name,
            direction=direction,
            running=self._karpenter.running(),
            rows=tuple(sorted(rows, key=lambda row: (row.node_pool, row.node))),
            tally=tally_of(self._ports.ledger, self._ports.cluster.name),
        )

    def read_node(self, name: str) -> Handover | None:
        """Return one node as it is now, None when it is gone."""
        node = self._ports.cluster.node(name)
        if node is None:
            return None
        return self._handover(
            node, self._read([node]), self._instances([node]).get(node.instance_id)
        )

    def _read(self, nodes: Sequence[Node] | None = None) -> _ClusterObjects:
        ports = self._ports
        usable, unusable = ports.cluster.provisioners()
        return _ClusterObjects(
            nodes=ports.cluster.nodes() if nodes is None else tuple(nodes),
            claims=self._karpenter.node_claims(),
            usable={owner.name: owner for owner in usable if owner.kind == OwnerKind.NODE_POOL},
            unusable={
                owner.name: f"Dovetail cannot use its NodePool: {'; '.join(owner.reasons)}"
                for owner in unusable
                if owner.kind == OwnerKind.NODE_POOL
            },
            slots={slot.instance_id: slot for slot in ports.ledger.slots(ports.cluster.name)},
        )

    def _instances(self, nodes: Iterable[Node]) -> dict[str, Instance]:
        ids = [node.instance_id for node in nodes if node.instance_id]
        shown = self._ports.cloud.instances(ids) if ids else ()
        return {instance.instance_id: instance for instance in shown}

    def _handover(self, node: Node, found: _ClusterObjects, instance: Instance | None) -> Handover:
        cluster = self._ports.cluster.name
        kept, problem = _kept(node)
        claim = _claim_of(node, found.claims, str(kept.get("name", "")))
        node_pool = node.labels.get(keys.NODE_POOL, "")
        owner = found.usable.get(node_pool) if not problem else None
        karpenter_tags: Mapping[str, str] = {}
        if kept:
            node_class = str(kept["spec"].get("nodeClassRef", {}).get("name", ""))
            karpenter_tags = karpenter_tags_of(str(kept["name"]), node_pool, node_class, cluster)
        return Handover(
            cluster=cluster,
            node=node,
            claim=claim,
            instance=instance,
            owner=owner,
            owner_problem=problem or _why_unusable(node_pool, found),
            slot=found.slots.get(node.instance_id),
            in_ledger=bool(node.instance_id)
            and self._ports.ledger.cluster_of(node.instance_id) == cluster,
            karpenter_tags=karpenter_tags,
            kept_drift=str(kept.get("drifted", "")),
            kept_expire_after=_span_in(kept, "expireAfter"),
            kept_grace_period=_span_in(kept, "terminationGracePeriod"),
            name_taken=next((c.name for c in found.claims if c.name == kept.get("name")), ""),
        )

    def _row(
        self, handover: Handover, direction: Direction, types: Mapping[str, InstanceType]
    ) -> SurveyedNode:
        done = next_step(handover, direction) is None
        instance = handover.instance
        row = SurveyedNode(
            node_pool=handover.node.labels.get(keys.NODE_POOL, ""),
            node=handover.node.name,
            instance_id=handover.node.instance_id,
            refusal="" if done else why_not(handover, direction),
            done=done,
        )
        if instance is None:
            return row
        offering, known = instance.offering, types.get(instance.offering.instance_type)
        return SurveyedNode(
            node_pool=row.node_pool,
            node=row.node,
            instance_id=row.instance_id,
            instance_type=offering.instance_type,
            zone=offering.zone,
            capacity_type=offering.capacity_type.value,
            price_micros_per_hour=price_of(offering, known),
            refusal=row.refusal,
            done=row.done,
        )


def _is_candidate(node: Node, claims: Iterable[NodeClaim], direction: Direction) -> bool:
    """Return whether Karpenter launched a node, or Dovetail did and nodes are handed back."""
    if keys.NODE_CLAIM in node.annotations:
        return True
    if any(claim.provider_id == node.provider_id != "" for claim in claims):
        # A finished hand-back leaves no other trace: the node is Karpenter's.
        return direction == Direction.TAKE_OVER
    return (
        direction == Direction.HAND_BACK
        and keys.SLOT in node.annotations
        and keys.NODE_POOL in node.labels
    )


def _without_node(found: _ClusterObjects) -> list[SurveyedNode]:
    provider_ids = {node.provider_id for node in found.nodes}
    kept = {str(_kept(node)[0].get("name", "")) for node in found.nodes}
    return [
        SurveyedNode(
            node_pool=claim.node_pool,
            node=claim.name,
            refusal="this NodeClaim has no Node: wait until its instance has joined, or delete it "
            "while Karpenter runs",
        )
        for claim in found.claims
        if claim.provider_id not in provider_ids and claim.name not in kept
    ]


def _claim_of(node: Node, claims: Iterable[NodeClaim], kept: str) -> NodeClaim | None:
    """Return a node's NodeClaim, by provider ID.

    Else a recreated NodeClaim of the name `kept` that has no provider ID yet; None for neither.
    """
    by_provider_id = [claim for claim in claims if claim.provider_id == node.provider_id != ""]
    by_name = [claim for claim in claims if claim.name == kept and not claim.provider_id]
    return next(iter((*by_provider_id, *by_name)), None)


def _kept(node: Node) -> tuple[Mapping[str, Any], str]:
    """Return the NodeClaim kept on a Node, empty without one, and why it cannot be read."""
    if keys.NODE_CLAIM not in node.annotations:
        return {}, ""
    try:
        return read_kept_claim(node), ""
    except InvalidManifestError as error:
        return {}, str(error)


def _span_in(kept: Mapping[str, Any], field_name: str) -> str:
    """Return a duration in a kept NodeClaim in the form of an annotation, empty without one."""
    try:
        return format_age(read_span(kept["spec"][field_name]))
    except (KeyError, ValueError):
        return ""


def _why_unusable(node_pool: str, found: _ClusterObjects) -> str:
    if not node_pool:
        return "it has no NodePool: delete its NodeClaim while Karpenter runs"
    missing = (
        f"there is no NodePool {node_pool} that names an EC2NodeClass: make it, or drain the node"
    )
    return found.unusable.get(node_pool, missing)
