"""Conditions of Provisioners and NodePools: whether nodes are launched for them, or why not."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from shared.model import labels as keys
from shared.model.dialect import BY_KIND, OwnerKind
from shared.model.dollars_and_counts import counted, first_names
from shared.model.ec2.launches import Trial
from shared.model.kubernetes.pods import Pod
from shared.model.note import Note
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.nodes.brakes.ceilings import CeilingUse
from shared.nodes.brakes.hold import PAUSED_REASON, Hold, rivals_of
from shared.nodes.brakes.runaway import MOST_TRIALS, provisioners_of, workload_of
from shared.nodes.events.node_events import MOST_PODS, event_on
from shared.nodes.events.node_template_status import ResolvedTemplate
from shared.nodes.events.recorded import drop_recorded
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.events.status_writes import write_status
from shared.planning.provisioner_problems import requirement_warnings
from shared.planning.rules.provisioner_offerings import address_warnings
from shared.ports import ClusterPorts, ConditionType, Severity
from shared.snapshot.refusals import KnownRefusals, read_refusals

_PAUSED: Final = Hold(
    reason=PAUSED_REASON,
    text=f"paused by its annotation {keys.PAUSED}: no node is launched or removed for it",
)
REFUSED_BY_EC2: Final = "LaunchRefused"
_NEVER_USABLE: Final = "NodesNeverUsable"
_TRIED: Final = (
    f"nodes of {MOST_TRIALS} launches of the last hour never became usable (look for 'Unable to "
    "register node' in the kubelet's log on the EC2 console, for a taint that stays, at the image)"
)
SHOWN_NOTE: Final = "shown"
_HOLD: Final = "hold"
_USELESS: Final = "unusable"
_CEILINGS: Final = "ceilings"
_OUTDATED: Final = "outdated"
NEARLY_FULL: Final = 80
_FULL: Final = 100
_NEAR: Final = "NearCeiling"
_REACHED: Final = "CeilingReached"
_SHOWN_FOR: Final = timedelta(days=400)


class ProvisionerConditions:
    """Sets conditions on Provisioners about what blocks launches, with an Event at each change.

    The ledger records what the conditions show, so that it can be removed even after a long time.
    Karpenter launches nodes for NodePools that are Ready: while it runs, and in shadow mode, no
    status of a NodePool is written.
    """

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports
        self._recorder = EventRecorder(ports)
        self._shown = Note(name=SHOWN_NOTE)
        self._hold: Hold | None = None
        self._skips_pools: bool | None = None
        self._is_shown = True

    def provisioners(
        self,
        valid: Sequence[Provisioner],
        invalid: Sequence[InvalidProvisioner],
        hold: Hold | None = None,
        resolved: Mapping[str, ResolvedTemplate] = MappingProxyType({}),
    ) -> None:
        """Set each Provisioner's condition: whether it can launch nodes, and if not, why.

        Args:
            hold: Why the whole cluster is held back, None if it is not.
            resolved: The resolved templates of the Provisioners, by name.
        """
        self._skips_pools = None
        for invalid_provisioner in invalid:
            self._invalid(invalid_provisioner)
        refusals = read_refusals(self._ports) if valid else KnownRefusals()
        for provisioner in valid:
            held = hold or (_PAUSED if provisioner.paused else None)
            refusal = refusals.reason_for(self._ports, provisioner)
            held = held or (Hold(reason=REFUSED_BY_EC2, text=refusal) if refusal else None)
            found = resolved.get(provisioner.name)
            if held is None and found is not None and found.problem:
                of_class = found.problems and provisioner.kind == OwnerKind.NODE_POOL
                reason = provisioner.dialect.reasons.template if of_class else "NotReady"
                held = Hold(reason=reason, text=f"cannot launch nodes: {found.problem}")
            self.active(provisioner, held)

    def _invalid(self, found: InvalidProvisioner) -> None:
        text, reasons = "; ".join(found.reasons), BY_KIND[found.kind].reasons
        reason = reasons.template if found.only_its_template else reasons.invalid
        self._write(found.name, active=False, reason=reason, message=text, owner=found.kind)
        named = Provisioner(name=found.name, uid=found.uid, kind=found.kind)
        self._recorder.record([event_on(named, reason, text)])

    def active(self, provisioner: Provisioner, held: Hold | None = None) -> None:
        """Set a Provisioner's condition: that it can be used, or why not."""
        self._write(
            provisioner.name,
            active=held is None,
            reason=held.reason if held is not None else provisioner.dialect.reasons.valid,
            message=held.text if held is not None else self._warnings(provisioner),
            owner=provisioner.kind,
        )

    def _warnings(self, provisioner: Provisioner) -> str:
        types = self._ports.catalog.instance_types()
        misspelled = requirement_warnings(provisioner, types)
        beyond = address_warnings(provisioner, types)
        return "; ".join((*provisioner.warnings, *misspelled, *beyond)) or "ready to launch nodes"

    def hold(self, hold: Hold | None) -> None:
        """Set or clear on every Provisioner the condition about a hold of the whole cluster.

        The ledger records what is shown, so that it can be cleared even after a long time.
        """
        ports, name = self._ports, self._ports.cluster.name
        self._hold, self._skips_pools = hold, None
        self._shown = ports.ledger.note(name, SHOWN_NOTE)
        shown_reason = shown_hold(self._shown)
        if hold is not None:
            valid, invalid = ports.cluster.provisioners()
            if shown_reason != hold.reason:
                self.provisioners(valid, invalid, hold)
            self._recorder.record(event_on(owner, hold.reason, hold.text) for owner in valid)
        elif shown_reason:
            drop_recorded(ports.ledger, name)
            self.provisioners(*ports.cluster.provisioners())
        reason = hold.reason if hold is not None else ""
        if shown_reason != reason:
            self._show({**self._shown.value, _HOLD: reason})

    def waiting(self, pending: Iterable[Pod]) -> None:
        """Record on the first pending pods why nothing is launched, if the cluster is held back."""
        hold = self._hold
        waiting = [pod for pod in pending if pod.is_provisionable] if hold is not None else []
        self._recorder.record(
            event_on(pod, hold.reason, hold.text) for pod in waiting[:MOST_PODS] if hold
        )

    def ceilings(
        self,
        provisioners: Sequence[Provisioner],
        uses: Mapping[str, CeilingUse],
        limited: Collection[str],
    ) -> None:
        """Set the conditions about how full the Provisioners' ceilings are, if they change.

        Args:
            uses: The use of the fullest ceiling, by Provisioner.
            limited: Provisioners whose limits exclude pending pods.
        """
        shown = shown_ceilings(self._shown)
        levels = {}
        for owner in provisioners:
            use = uses.get(owner.name, CeilingUse(percent=0, text="has no ceiling"))
            held = use.percent >= NEARLY_FULL and owner.name in limited
            reached = held or use.percent >= _FULL
            near = _NEAR if use.percent >= NEARLY_FULL else ""
            level = levels[owner.name] = _REACHED if reached else near
            if level == shown.get(owner.name, ""):
                continue
            text = f"{use.text}; pending pods need more" if held else use.text
            self._write(
                owner.name,
                active=not reached,
                reason=level or "WithinCeiling",
                message=text,
                kind=ConditionType.WITHIN_CEILING,
                owner=owner.kind,
            )
            if level:
                self._recorder.record([event_on(owner, level, text)])
        full = {name: level for name, level in levels.items() if level}
        if full != shown:
            self._show({**self._shown.value, _CEILINGS: full})

    def outdated(self, owners: Sequence[Provisioner], texts: Mapping[str, str]) -> None:
        """Set the conditions about which nodes of owners are outdated, if they change.

        Args:
            texts: The message of each owner with outdated nodes, by owner.
        """
        shown = shown_outdated(self._shown)
        for owner in owners:
            text = texts.get(owner.name, "")
            if text == shown.get(owner.name, ""):
                continue
            self._write(
                owner.name,
                active=not text,
                reason="Drifted" if text else "UpToDate",
                message=text or "no node is outdated",
                kind=ConditionType.NODES_CURRENT,
                owner=owner.kind,
            )
            if text and owner.name not in shown:
                drifted_event = event_on(owner, "Drifted", text, severity=Severity.NORMAL)
                self._recorder.record([drifted_event])
        if texts != shown:
            self._show({**self._shown.value, _OUTDATED: dict(texts)})

    def runaways(
        self,
        until: Mapping[str, datetime],
        pending: Mapping[str, Pod],
        trials: Sequence[Trial],
        provisioners: Sequence[Provisioner],
    ) -> None:
        """Record that nothing is launched for pods now, on the pods and their nodes' Provisioners.

        Args:
            until: When nodes are launched for them again, by pod UID.
            trials: Launches whose nodes were unusable.
        """
        held = [pending[uid] for uid in sorted(until)]
        self._recorder.record(
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
        kinds = {owner.name: owner.kind for owner in provisioners}
        for name, pods in sorted(affected.items()):
            workloads = sorted({workload_of(pod) for pod in pods})
            text = (
                f"{_TRIED}; none is launched for {counted(len(pods), 'pod')} of "
                f"{first_names(workloads)} "
                f"{_before(ends[name])}"
            )
            self._usable(kinds, name, usable=False, reason=_NEVER_USABLE, text=text)
        for name in sorted(shown.keys() - affected.keys()):
            self._usable(kinds, name, usable=True, reason="Usable", text="no workload is held")
        if ends != shown:
            useless = {name: end.isoformat() for name, end in sorted(ends.items())}
            self._show({**self._shown.value, _USELESS: useless})

    def _usable(
        self, kinds: Mapping[str, OwnerKind], name: str, *, usable: bool, reason: str, text: str
    ) -> None:
        self._write(
            name,
            active=usable,
            reason=reason,
            message=text,
            kind=ConditionType.NODES_USABLE,
            owner=kinds.get(name, OwnerKind.PROVISIONER),
        )

    def _write(self, name: str, *, owner: OwnerKind, active: bool, **fields: Any) -> None:
        if owner != OwnerKind.NODE_POOL or not self._has_rival():
            write = self._ports.cluster.set_provisioner_condition
            written = write_status(write, name, owner=owner, active=active, **fields)
            self._is_shown = self._is_shown and written

    def _has_rival(self) -> bool:
        """Return whether another autoscaler may use the NodePools and read their status."""
        if self._skips_pools is None:
            self._skips_pools = self._ports.brakes.shadow or bool(rivals_of(self._ports))
        return self._skips_pools

    def _show(self, value: Mapping[str, Any]) -> None:
        if not self._is_shown:
            # A condition was not written: sweep wakes the next invocation, which writes it.
            return
        name, until = self._ports.cluster.name, self._ports.clock.now() + _SHOWN_FOR
        self._shown = Note(name=SHOWN_NOTE, value=value)
        self._ports.ledger.put_note(name, self._shown, until)


def shown_hold(shown: Note) -> str:
    """Return the reason that Provisioners show for a hold of the whole cluster, else empty."""
    return str(shown.value.get(_HOLD, ""))


def shown_ceilings(shown: Note) -> dict[str, str]:
    """Return the Provisioners that show a ceiling as nearly full or reached, with that reason."""
    return dict(shown.value.get(_CEILINGS, {}))


def shown_outdated(shown: Note) -> dict[str, str]:
    """Return the messages that owners show about their outdated nodes, by owner."""
    return dict(shown.value.get(_OUTDATED, {}))


def shown_unusable(shown: Note) -> dict[str, datetime]:
    """Return the Provisioners that show that their nodes never become usable, and until when."""
    return {
        name: datetime.fromisoformat(end) for name, end in shown.value.get(_USELESS, {}).items()
    }


def _before(end: datetime) -> str:
    return f"before {end:%H:%M} UTC"
