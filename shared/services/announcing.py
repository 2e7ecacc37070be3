"""What people are told: Kubernetes Events and conditions, each thing once in a while."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from shared.model.launch import PlannedNode, PodRef, Slot
from shared.model.nodes import Node
from shared.model.plan import Plan
from shared.model.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.snapshot import InvalidProvisioner
from shared.ports import ClusterPorts, Happening, Rival, Severity
from shared.services.ceilings import OverCeiling
from shared.services.runaway import MOST_TRIALS, digest

_REFUSED: Final = "AnotherAutoscaler"
_DOLLAR: Final = 1_000_000
# How many pods are told of their node at once, and how many nodes are named in one Event.
_MOST_NOMINATED: Final = 25
_MOST_NAMED: Final = 3


class Announcer:
    """Tells one cluster what was decided; what was told in the last minutes is not repeated.

    Two invocations that decide the same, by the queue and by the fast lane, tell it once.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports

    def tell(self, happenings: Iterable[Happening]) -> int:
        """Write those Events that were not written lately; return how many that were."""
        return self._tell({_mark(one): one for one in happenings})

    def unschedulable(
        self, plan: Plan, over: Sequence[OverCeiling], pending: Mapping[str, Pod]
    ) -> None:
        """Tell pods why they have no place."""
        told = [_pod_event(pending, one.pod, "; ".join(one.reasons)) for one in plan.unschedulable]
        told += [_pod_event(pending, ref, one.reason) for one in over for ref in one.node.pods]
        self.tell(told)

    def runaways(self, until: Mapping[str, datetime], pending: Mapping[str, Pod]) -> None:
        """Tell pods that no more machines are bought for them for now."""
        self.tell(
            Happening(
                kind="Pod",
                namespace=pending[uid].namespace,
                name=pending[uid].name,
                uid=uid,
                severity=Severity.WARNING,
                reason="NodesNeverUsable",
                message=(
                    f"machines of {MOST_TRIALS} plans of the last hour never became usable for "
                    f"it: none is bought before {end:%H:%M} UTC; look at taints, kubelet and image"
                ),
            )
            for uid, end in sorted(until.items())
        )

    def shadow(self, nodes: Sequence[PlannedNode], provisioners: Mapping[str, Provisioner]) -> None:
        """Tell Provisioners what would have been bought."""
        of_owner: dict[str, list[PlannedNode]] = {}
        for node in nodes:
            of_owner.setdefault(node.provisioner, []).append(node)
        self.tell(
            provisioner_event(
                provisioners[name],
                "ShadowPlan",
                f"would buy {len(planned)} nodes for {sum(len(n.pods) for n in planned)} pods at "
                f"${sum(n.price_micros_per_hour for n in planned) / _DOLLAR:.4f}/h",
                severity=Severity.NORMAL,
            )
            for name, planned in sorted(of_owner.items())
        )

    def cannot_launch(self, provisioner: Provisioner, text: str) -> None:
        """Tell a Provisioner that nothing can be bought for it."""
        self.tell([provisioner_event(provisioner, "CannotLaunch", text)])

    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        """Write into each Provisioner's status whether it can be used, and if not, why.

        Returns:
            Those that can, and those that cannot.
        """
        valid, invalid = self._ports.cluster.provisioners()
        for one in invalid:
            text = "; ".join(one.reasons)
            self._ports.cluster.set_provisioner_condition(
                one.name, active=False, reason="Invalid", message=text
            )
            named = Provisioner(name=one.name, uid=one.uid)
            self.tell([provisioner_event(named, "Invalid", text)])
        for provisioner in valid:
            self._ports.cluster.set_provisioner_condition(
                provisioner.name,
                active=True,
                reason="Valid",
                message="; ".join(provisioner.warnings) or "ready to launch nodes",
            )
        return valid, invalid

    def rivals(self, rivals: Sequence[Rival]) -> None:
        """Refuse every Provisioner beside another autoscaler; accept them again when it is gone."""
        ports = self._ports
        now = ports.clock.now()
        was_refused = digest(_REFUSED)
        told = ports.ledger.told(ports.cluster.name, now)
        if not rivals:
            if was_refused in told:
                ports.ledger.forget_told(ports.cluster.name)
                self.provisioners()
            return
        who = ", ".join(f"{one.kind.value} (lease {one.where})" for one in rivals)
        text = f"{who} is running: nothing is bought or ended beside it; stop one of the two"
        events = [provisioner_event(one, _REFUSED, text) for one in ports.cluster.provisioners()[0]]
        fresh = {_mark(one): one for one in events}
        for one in (one for mark, one in fresh.items() if mark not in told):
            ports.cluster.set_provisioner_condition(
                one.name, active=False, reason=_REFUSED, message=text
            )
        self._tell(fresh, also=frozenset({was_refused}))

    def _tell(self, marked: Mapping[str, Happening], *, also: frozenset[str] = frozenset()) -> int:
        if not marked:
            return 0
        name, now = self._ports.cluster.name, self._ports.clock.now()
        told = self._ports.ledger.told(name, now)
        fresh = {mark: one for mark, one in marked.items() if mark not in told}
        if fresh:
            self._ports.cluster.happened(list(fresh.values()))
            self._ports.ledger.note_told(name, frozenset(fresh) | also, now)
        return len(fresh)


def provisioner_event(
    provisioner: Provisioner, reason: str, text: str, *, severity: Severity = Severity.WARNING
) -> Happening:
    """Return an Event about a Provisioner."""
    return Happening(
        kind="Provisioner",
        namespace="",
        name=provisioner.name,
        uid=provisioner.uid,
        severity=severity,
        reason=reason,
        message=text,
    )


def node_event(
    node: Node, reason: str, text: str, *, severity: Severity = Severity.WARNING
) -> Happening:
    """Return an Event about a Node."""
    return Happening(
        kind="Node",
        namespace="",
        name=node.name,
        uid=node.uid,
        severity=severity,
        reason=reason,
        message=text,
    )


def made_events(
    made: Sequence[tuple[Slot, Node]], provisioners: Mapping[str, Provisioner]
) -> list[Happening]:
    """Return Events that tell what was launched: Provisioners all of it, pods their node.

    Of very many pods only the first are told: each Event is a call to the API server.
    """
    of_owner: dict[str, list[tuple[Slot, Node]]] = {}
    for slot, node in made:
        of_owner.setdefault(slot.provisioner, []).append((slot, node))
    told = []
    for name, ones in sorted(of_owner.items()):
        types = Counter(slot.offering.instance_type for slot, _ in ones)
        named = ", ".join(f"{count} {kind}" for kind, count in sorted(types.items()))
        price = sum(slot.price_micros_per_hour for slot, _ in ones) / _DOLLAR
        pods = sum(len(slot.pods) for slot, _ in ones)
        owner = provisioners.get(name, Provisioner(name=name))
        text = f"{named} for {pods} pods at ${price:.4f}/h: {_first(n.name for _, n in ones)}"
        told.append(provisioner_event(owner, "Launched", text, severity=Severity.NORMAL))
    nominated = [(ref, node.name) for slot, node in made for ref in slot.pods]
    return told + [
        Happening(
            kind="Pod",
            namespace=ref.namespace,
            name=ref.name,
            uid=ref.uid,
            severity=Severity.NORMAL,
            reason="Nominated",
            message=f"its place is on node {name}",
        )
        for ref, name in nominated[:_MOST_NOMINATED]
    ]


def _first(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_MOST_NAMED]) + (" …" if len(listed) > _MOST_NAMED else "")


def _pod_event(pending: Mapping[str, Pod], ref: PodRef, text: str) -> Happening:
    pod = pending.get(ref.uid)
    return Happening(
        kind="Pod",
        namespace=ref.namespace,
        name=ref.name,
        uid=pod.uid if pod is not None else ref.uid,
        severity=Severity.WARNING,
        reason="FailedProvisioning",
        message=text,
    )


def _mark(one: Happening) -> str:
    return digest(one.kind, one.uid, one.namespace, one.name, one.reason, one.message)
