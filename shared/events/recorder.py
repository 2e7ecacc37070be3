"""What people are told: Kubernetes Events and conditions, each thing once in a while."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from shared.brakes.ceilings import CeilingUse, OverCeiling
from shared.brakes.hold import PAUSED_REASON, Hold
from shared.brakes.refusals import KnownRefusals, RefusalBook
from shared.brakes.runaway import MOST_TRIALS, digest, provisioners_of, workload_of
from shared.events.node_events import (
    MOST_PODS,
    Machine,
    counted,
    event_on,
    first_names,
    terminated_group,
)
from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode, PodRef, Trial
from shared.model.errors import AutoscalerError
from shared.model.kubernetes.pods import Pod
from shared.model.memo import Memo
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, InvalidProvisioner
from shared.node_templates.status import Resolved
from shared.packing.problem import PackingSettings
from shared.planning.cheaper_provisioners import cheaper_provisioner, same_weight
from shared.planning.provisioner_checks import requirement_warnings
from shared.ports import ClusterPorts, Condition, KubernetesEvent, Severity

_PAUSED: Final = Hold(
    reason=PAUSED_REASON,
    text=f"paused by its annotation {keys.PAUSED}: no node is launched or removed for it",
)
_CHEAPER: Final = "CheaperProvisioner"
REFUSED_BY_EC2: Final = "LaunchRefused"
_NEVER_USABLE: Final = "NodesNeverUsable"
_TRIED: Final = (
    f"nodes of {MOST_TRIALS} launches of the last hour never became usable (look for 'Unable to "
    "register node' in the kubelet's log on the EC2 console, for a taint that stays, at the image)"
)
# In the ledger: what the conditions of Provisioners show that must be taken back one day.
SHOWN: Final = "shown"
_HOLD: Final = "hold"
_USELESS: Final = "unusable"
_CEILINGS: Final = "ceilings"
# Percent of a ceiling from which people are warned, and from which nothing more is launched.
NEARLY_FULL: Final = 80
_FULL: Final = 100
_NEAR: Final = "NearCeiling"
_REACHED: Final = "CeilingReached"
_SHOWN_FOR: Final = timedelta(days=400)
_DOLLAR: Final = 1_000_000
_LOG: Final = logging.getLogger(__name__)


class EventRecorder:
    """Tells one cluster what was decided; what was told in the last minutes is not repeated.

    Two invocations that decide the same, by the queue and by the fast lane, tell it once.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports
        self._shown = Memo(name=SHOWN)
        self._hold: Hold | None = None

    def record(self, kube_events: Iterable[KubernetesEvent]) -> int:
        """Write those Events that were not written lately; return how many that were."""
        marked = {_mark(kube_event): kube_event for kube_event in kube_events}
        if not marked:
            return 0
        name, now = self._ports.cluster.name, self._ports.clock.now()
        told = self._ports.ledger.recently_recorded(name, now)
        fresh = {mark: event for mark, event in marked.items() if mark not in told}
        if fresh:
            self._ports.cluster.record_events(list(fresh.values()))
            self._ports.ledger.note_recorded(name, frozenset(fresh), now)
        return len(fresh)

    def record_each(self, *kube_events: KubernetesEvent) -> None:
        """Write Events about steps that happen once, without looking for earlier ones."""
        if kube_events:
            self._ports.cluster.record_events(kube_events)

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
        self.record_each(*terminated_group(machines, {owner.name: owner for owner in provisioners}))

    def unschedulable(
        self, plan: Plan, over: Sequence[OverCeiling], pending: Mapping[str, Pod]
    ) -> None:
        """Tell pods why they have no place."""
        told = [
            _refused_event(pending, pod_left.pod, "; ".join(pod_left.reasons))
            for pod_left in plan.unschedulable
        ]
        told += [
            _refused_event(pending, ref, over_ceiling.reason)
            for over_ceiling in over
            for ref in over_ceiling.node.pods
        ]
        self.record(told)

    def runaways(
        self, until: Mapping[str, datetime], pending: Mapping[str, Pod], trials: Sequence[Trial]
    ) -> None:
        """Tell pods for which nothing is launched for now, and the Provisioners they had nodes of.

        Args:
            until: When nodes are launched for them again, by uid.
            trials: Launches whose nodes were of no use.
        """
        held = [pending[uid] for uid in sorted(until)]
        self.record(
            event_on(
                pod, _NEVER_USABLE, f"{_TRIED}; none is launched for it {_before(until[pod.uid])}"
            )
            for pod in held
        )
        affected: dict[str, list[Pod]] = {}
        for pod in held:
            for name in provisioners_of(pod, trials):
                affected.setdefault(name, []).append(pod)
        ends = {name: max(until[pod.uid] for pod in pods) for name, pods in affected.items()}
        shown = shown_unusable(self._shown)
        for name, pods in sorted(affected.items()):
            workloads = sorted({workload_of(pod) for pod in pods})
            text = (
                f"{_TRIED}; none is launched for {counted(len(pods), 'pod')} of "
                f"{first_names(workloads)} "
                f"{_before(ends[name])}"
            )
            self._usable(name, usable=False, reason=_NEVER_USABLE, text=text)
        for name in sorted(shown.keys() - affected.keys()):
            self._usable(name, usable=True, reason="Usable", text="no workload is held")
        if ends != shown:
            useless = {name: end.isoformat() for name, end in sorted(ends.items())}
            self._show({**self._shown.value, _USELESS: useless})

    def _usable(self, name: str, *, usable: bool, reason: str, text: str) -> None:
        self._ports.cluster.set_provisioner_condition(
            name, active=usable, reason=reason, message=text, kind=Condition.NODES_USABLE
        )

    def ceilings(
        self,
        provisioners: Sequence[Provisioner],
        uses: Mapping[str, CeilingUse],
        turned_away: Collection[str],
    ) -> None:
        """Show on Provisioners how full their ceilings are, each time that it becomes otherwise.

        Args:
            uses: By Provisioner.
            turned_away: Provisioners whose limits are in the way of pods that wait.
        """
        shown = shown_ceilings(self._shown)
        levels = {}
        for owner in provisioners:
            use = uses.get(owner.name, CeilingUse(percent=0, text="has no ceiling"))
            held = use.percent >= NEARLY_FULL and owner.name in turned_away
            reached = held or use.percent >= _FULL
            near = _NEAR if use.percent >= NEARLY_FULL else ""
            level = levels[owner.name] = _REACHED if reached else near
            if level == shown.get(owner.name, ""):
                continue
            text = f"{use.text}; pending pods need more" if held else use.text
            self._ports.cluster.set_provisioner_condition(
                owner.name,
                active=not reached,
                reason=level or "WithinCeiling",
                message=text,
                kind=Condition.WITHIN_CEILING,
            )
            if level:
                self.record([event_on(owner, level, text)])
        full = {name: level for name, level in levels.items() if level}
        if full != shown:
            self._show({**self._shown.value, _CEILINGS: full})

    def shadow(self, nodes: Sequence[PlannedNode], provisioners: Mapping[str, Provisioner]) -> None:
        """Tell Provisioners what would have been bought."""
        of_owner: dict[str, list[PlannedNode]] = {}
        for node in nodes:
            of_owner.setdefault(node.provisioner, []).append(node)
        self.record(
            event_on(
                provisioners[name],
                "ShadowPlan",
                f"would buy {len(planned)} nodes for {sum(len(n.pods) for n in planned)} pods at "
                f"${sum(n.price_micros_per_hour for n in planned) / _DOLLAR:.4f}/h",
                severity=Severity.NORMAL,
            )
            for name, planned in sorted(of_owner.items())
        )

    def cheaper(self, snapshot: ClusterSnapshot, plan: Plan, settings: PackingSettings) -> None:
        """Tell Provisioners that one of the same weight would have taken their pods for less.

        To find out takes as long as a plan, so each pair is looked at once in some minutes.
        """
        pairs = {digest(_CHEAPER, *pair): pair for pair in same_weight(snapshot, plan)}
        if not pairs:
            return
        name, now = self._ports.cluster.name, self._ports.clock.now()
        told = self._ports.ledger.recently_recorded(name, now)
        fresh = {mark: pair for mark, pair in pairs.items() if mark not in told}
        owners = {owner.name: owner for owner in snapshot.provisioners}
        for used, other in fresh.values():
            found = cheaper_provisioner(snapshot, plan, used, other, settings)
            if found is not None:
                self.record_each(
                    event_on(owners[used], _CHEAPER, found.text, severity=Severity.NORMAL)
                )
        if fresh:
            self._ports.ledger.note_recorded(name, frozenset(fresh), now)

    def cannot_launch(self, provisioner: Provisioner, text: str) -> None:
        """Tell a Provisioner that nothing can be bought for it."""
        self.record([event_on(provisioner, "CannotLaunch", text)])

    def provisioners(
        self,
        valid: Sequence[Provisioner],
        invalid: Sequence[InvalidProvisioner],
        hold: Hold | None = None,
        resolved: Mapping[str, Resolved] = MappingProxyType({}),
    ) -> None:
        """Write into each Provisioner's status whether it can launch nodes, and if not, why.

        Args:
            hold: Why the whole cluster is held back, None when it is not.
            resolved: What the Provisioners find, by name.
        """
        for invalid_provisioner in invalid:
            text = "; ".join(invalid_provisioner.reasons)
            self._ports.cluster.set_provisioner_condition(
                invalid_provisioner.name, active=False, reason="Invalid", message=text
            )
            named = Provisioner(name=invalid_provisioner.name, uid=invalid_provisioner.uid)
            self.record([event_on(named, "Invalid", text)])
        refusals = RefusalBook(self._ports).read() if valid else KnownRefusals()
        for provisioner in valid:
            held = hold or (_PAUSED if provisioner.paused else None)
            refusal = refusals.standing(self._ports, provisioner)
            held = held or (refused_by_ec2(refusal) if refusal else None)
            found = resolved.get(provisioner.name)
            if held is None and found is not None and found.problem:
                held = Hold(reason="NotReady", text=f"cannot launch nodes: {found.problem}")
            self.active(provisioner, held)

    def active(self, provisioner: Provisioner, held: Hold | None = None) -> None:
        """Write into a Provisioner's status that it can be used, or why not."""
        self._ports.cluster.set_provisioner_condition(
            provisioner.name,
            active=held is None,
            reason=held.reason if held is not None else "Valid",
            message=held.text if held is not None else self._warnings(provisioner),
        )

    def _warnings(self, provisioner: Provisioner) -> str:
        misspelled = requirement_warnings(provisioner, self._ports.catalog.instance_types())
        return "; ".join((*provisioner.warnings, *misspelled)) or "ready to launch nodes"

    def hold(self, hold: Hold | None) -> None:
        """Show on every Provisioner why the whole cluster is held back, and take that back.

        The ledger keeps what is shown, so that it is taken back however long it stood.
        """
        ports, name = self._ports, self._ports.cluster.name
        self._hold = hold
        self._shown = ports.ledger.memo(name, SHOWN)
        was = shown_hold(self._shown)
        if hold is not None:
            valid, invalid = ports.cluster.provisioners()
            if was != hold.reason:
                self.provisioners(valid, invalid, hold)
            self.record(event_on(owner, hold.reason, hold.text) for owner in valid)
        elif was:
            ports.ledger.forget_recorded(name)
            self.provisioners(*ports.cluster.provisioners())
        reason = hold.reason if hold is not None else ""
        if was != reason:
            self._show({**self._shown.value, _HOLD: reason})

    def waiting(self, pending: Iterable[Pod]) -> None:
        """Tell the first pods that wait for capacity why none is launched, if it is held back."""
        hold = self._hold
        waiting = [pod for pod in pending if pod.is_provisionable] if hold is not None else []
        self.record(event_on(pod, hold.reason, hold.text) for pod in waiting[:MOST_PODS] if hold)

    def _show(self, value: Mapping[str, Any]) -> None:
        name, until = self._ports.cluster.name, self._ports.clock.now() + _SHOWN_FOR
        self._shown = Memo(name=SHOWN, value=value)
        self._ports.ledger.put_memo(name, self._shown, until)


def refused_by_ec2(text: str) -> Hold:
    """Return what a Provisioner shows that EC2 refuses to launch for."""
    return Hold(reason=REFUSED_BY_EC2, text=text)


def shown_hold(shown: Memo) -> str:
    """Return the reason that Provisioners show for being held back as a cluster, else empty."""
    return str(shown.value.get(_HOLD, ""))


def shown_ceilings(shown: Memo) -> dict[str, str]:
    """Return the Provisioners that show a ceiling as nearly full or reached, and as which."""
    return dict(shown.value.get(_CEILINGS, {}))


def shown_unusable(shown: Memo) -> dict[str, datetime]:
    """Return the Provisioners that show that their nodes are never usable, and until when."""
    return {
        name: datetime.fromisoformat(end) for name, end in shown.value.get(_USELESS, {}).items()
    }


def _refused_event(pending: Mapping[str, Pod], ref: PodRef, text: str) -> KubernetesEvent:
    pod = pending.get(ref.uid)
    return event_on(pod if pod is not None else ref, "FailedProvisioning", text)


def _before(end: datetime) -> str:
    return f"before {end:%H:%M} UTC"


def _mark(event: KubernetesEvent) -> str:
    return digest(event.kind, event.uid, event.namespace, event.name, event.reason, event.message)
