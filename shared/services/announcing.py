"""What people are told: Kubernetes Events and conditions, each thing once in a while."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from shared.model.errors import AutoscalerError
from shared.model.launch import PlannedNode, PodRef
from shared.model.plan import Plan
from shared.model.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.snapshot import InvalidProvisioner
from shared.ports import ClusterPorts, Happening, Rival, Severity
from shared.services.ceilings import OverCeiling
from shared.services.node_events import Machine, provisioner_event, terminated_group
from shared.services.runaway import MOST_TRIALS, digest

_REFUSED: Final = "AnotherAutoscaler"
_DOLLAR: Final = 1_000_000
_LOG: Final = logging.getLogger(__name__)


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

    def say(self, *happenings: Happening) -> None:
        """Write Events about steps that happen once, without looking for earlier ones."""
        self._ports.cluster.happened(happenings)

    def terminated(self, machines: Sequence[Machine]) -> None:
        """Tell Provisioners which of their nodes EC2 was asked to terminate, in one Event each.

        Nothing is told while the API server cannot be asked: machines end all the same.
        """
        if not machines:
            return
        try:
            provisioners, _ = self._ports.cluster.provisioners()
        except AutoscalerError as error:
            _LOG.warning("termination of %d nodes is not told: %s", len(machines), error)
            return
        self.say(*terminated_group(machines, {owner.name: owner for owner in provisioners}))

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
