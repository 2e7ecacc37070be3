"""Deciding about a cluster, and asking what was decided."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import LaunchOption, PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.snapshot.volumes import with_volumes
from tests import builders as make
from tests.fakes.cluster import FakeCluster
from tests.karpenter_cases.scheduling.machines import node
from tests.karpenter_cases.scheduling.market import MARKET, ZONES
from tests.karpenter_cases.scheduling.writing import pod, provisioner

# As cheap as can be, quickly found; nothing is bought for pods to come.
SETTINGS: Final = PackingSettings(leftover_value_percent=0, improve_iterations=2)


@dataclass(frozen=True)
class Home:
    """Where a pod goes: a new node, or one that is there; its possible labels, by offering."""

    name: str
    provisioner: str
    standings: tuple[Mapping[str, str], ...] = field(hash=False)
    new: PlannedNode | None = None

    def values(self, key: str) -> set[str | None]:
        return {standing.get(key) for standing in self.standings}


class Outcome:
    """What was decided about a snapshot, to be asked about."""

    def __init__(self, snapshot: ClusterSnapshot, plan: Plan) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.homes: dict[str, Home] = {}
        types = {instance_type.name: instance_type for instance_type in snapshot.instance_types}
        for number, planned in enumerate(plan.nodes):
            standings = tuple(
                {
                    **types[option.offering.instance_type].labels,
                    **planned.labels,
                    keys.ZONE: option.offering.zone,
                    keys.CAPACITY_TYPE: option.offering.capacity_type.value,
                    keys.HOSTNAME: f"new-{number}",
                }
                for option in (*planned.options, *planned.fallback)
            )
            home = Home(f"new-{number}", planned.provisioner, standings, planned)
            self.homes.update({ref.name: home for ref in planned.pods})
        labels = {slot.name: slot.labels for slot in snapshot.slots}
        labels |= {other_node.name: other_node.labels for other_node in snapshot.nodes}
        for placed in plan.placements:
            there = Home(placed.node, "", (labels[placed.node],))
            self.homes.update({ref.name: there for ref in placed.pods})
        self.pending = {
            pod_left.pod.name: "; ".join(pod_left.reasons) for pod_left in plan.unschedulable
        }
        assert not self.homes.keys() & self.pending.keys()

    @property
    def new(self) -> tuple[PlannedNode, ...]:
        return self.plan.nodes

    def is_placed(self, *names: str) -> bool:
        return all(name in self.homes for name in names)

    def where(self, name: str = "a") -> str:
        """Return the name of the node a pod goes to, empty when it stays pending."""
        return self.homes[name].name if name in self.homes else ""

    def values(self, key: str, name: str = "a") -> set[str | None]:
        """Return the values of a label the pod's node may have."""
        return self.homes[name].values(key)

    def by(self, name: str = "a") -> str:
        """Return which provisioner makes the node of a pod."""
        return self.homes[name].provisioner

    def options(self, name: str = "a") -> tuple[LaunchOption, ...]:
        planned = self.homes[name].new
        assert planned is not None
        return planned.options

    def type_of(self, name: str = "a") -> str:
        """Return the type that would be launched first for a pod."""
        return self.options(name)[0].offering.instance_type

    @property
    def types(self) -> list[str]:
        """The type each new node would be launched as first, sorted."""
        return sorted(planned_node.options[0].offering.instance_type for planned_node in self.new)

    def counts(self, key: str, prefix: str = "", *, standing: bool = False) -> dict[str, int]:
        """Return how many pods are in each domain of a key; each node must be sure of its own.

        Args:
            prefix: Count only pods whose name begins so.
            standing: Whether pods that stood before count too.
        """
        found: Counter[str] = Counter()
        for name, home in self.homes.items():
            if name.startswith(prefix):
                (value,) = home.values(key)
                assert value is not None
                found[value] += 1
        labels = {other_node.name: other_node.labels for other_node in self.snapshot.nodes}
        for other_pod in self.snapshot.bound if standing else ():
            if other_pod.name.startswith(prefix) and key in labels.get(other_pod.node_name, {}):
                found[labels[other_pod.node_name][key]] += 1
        return dict(found)

    def shares(self, key: str, prefix: str = "", *, standing: bool = False) -> list[int]:
        """Return the counts alone, sorted."""
        return sorted(self.counts(key, prefix, standing=standing).values())


def solve(*waiting: Pod, market: Sequence[InstanceType] = MARKET, **more: Any) -> Outcome:
    """Decide about the pods; keywords are those of a snapshot.

    Manifests of volumes are given as `stored`.
    """
    provisioners = more.pop("provisioners", (provisioner(),))
    more.setdefault("sites", tuple(make.site(entry.name, ZONES) for entry in provisioners))
    stored = more.pop("stored", ())
    snapshot = make.snapshot(
        *waiting,
        provisioners=provisioners,
        instance_types=tuple(sorted(market, key=lambda entry: entry.name)),
        **more,
    )
    cluster = FakeCluster()
    cluster.apply(*stored)
    snapshot = with_volumes(cluster, snapshot)
    return Outcome(snapshot, decide(snapshot, SETTINGS))


def alone(words: Mapping[str, Any], **more: Any) -> Outcome:
    """Decide about one pod called `a`."""
    return solve(pod(**words), **more)


def settled(outcome: Outcome) -> dict[str, Any]:
    """Return the nodes and standing pods of a later snapshot: the plan has come true."""
    types = {instance_type.name: instance_type for instance_type in outcome.snapshot.instance_types}
    nodes = list(outcome.snapshot.nodes)
    names: dict[str, str] = {}
    for number, planned in enumerate(outcome.plan.nodes):
        offering = planned.options[0].offering
        made = node(
            f"node-{len(nodes)}",
            offering.zone,
            types[offering.instance_type],
            capacity_type=offering.capacity_type.value,
            owner=planned.provisioner,
            labels={k: v for k, v in planned.labels.items() if k != keys.PROVISIONER_NAME},
        )
        nodes.append(made)
        names[f"new-{number}"] = made.name
    bound = list(outcome.snapshot.bound)
    for other_pod in outcome.snapshot.pending:
        if other_pod.name in outcome.homes:
            home = outcome.homes[other_pod.name].name
            bound.append(stand(other_pod, names.get(home, home)))
    return {"nodes": tuple(nodes), "bound": tuple(bound)}


def stand(other_pod: Pod, on: str) -> Pod:
    """Return the pod, running on a node."""
    fields = {name: getattr(other_pod, name) for name in Pod.__struct_fields__}
    return Pod(**{**fields, "node_name": on, "phase": "Running", "unschedulable": False})
