"""Takes one safeguard away at a time: the invariants must notice each."""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from functions.provision import runtime as provision_runtime
from shared.kube.api import ExpiredError
from shared.kube.kept import stored
from shared.kube.kept.copy import KeptCopy
from shared.kube.kept.state import KeptState
from shared.model import labels as keys
from shared.model.ec2.fleet_errors import ErrorKind
from shared.model.ec2.launches import FleetInstance, Instance, Lease, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.join import node_binding, node_objects
from shared.nodes.launch import launch_request, launcher, node_taints, slots
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.intents import IntentBook
from shared.nodes.launch.plan_launcher import PlanLauncher
from shared.nodes.launch.refusals import refusal_log
from shared.nodes.leave import instance_terminator, interruption, pod_eviction, termination
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.planning.rules import limits
from shared.ports import NodeManifest
from shared.ports.cluster import EachPage
from shared.provisioning import provision, session
from shared.provisioning.sweep import sweep
from shared.provisioning.sweep.sweep import Sweep
from shared.snapshot import gather
from shared.snapshot.launch_body import LaunchAttempt
from shared.snapshot.node_facts import NodeFacts
from tests.fakes.ledger import FakeLedger
from tests.simulation.campaigns.swapping import swapped
from tests.simulation.schedule import recorder, running
from tests.simulation.schedule.faults import Site
from tests.simulation.schedule.kernel import Process

Patch = Callable[[], contextlib.AbstractContextManager[object, bool | None]]


@dataclass(frozen=True)
class Mutation:
    """One safeguard, and how it is taken away."""

    name: str
    patch: Patch


@dataclass(frozen=True)
class Catch:
    """Which invariant noticed a mutation, and after how many schedules."""

    mutation: str
    schedules: int
    invariant: str = ""
    seed: int = -1
    text: str = ""


def _intent_after_call() -> contextlib.AbstractContextManager[object, bool | None]:
    """EC2 is asked first; what says so is written down when it has answered."""
    original = recorder.Recorder.call
    kept: dict[int, list[Callable[[], Any]]] = {}

    def call(
        self: Any,
        process: Process,
        site: Site,
        cluster: str,
        found: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Any:
        def go_on() -> Any:
            return original(self, process, site, cluster, found, args, more)

        method = site.method
        if method in ("open_intent", "change_intent"):
            kept.setdefault(id(process), []).append(go_on)
            return args[0]
        if method == "create_fleet":
            answer = go_on()
            for write in kept.pop(id(process), ()):
                write()
            return answer
        return go_on()

    return swapped(recorder.Recorder, call=call)


def _no_token_no_adoption() -> contextlib.AbstractContextManager[object, bool | None]:
    """Each call has a token of its own, and nothing is looked for by tag."""
    calls = iter(range(10**9))

    def ask(self: Any, body: Any) -> Any:
        token = hashlib.sha256(str(next(calls)).encode()).hexdigest()
        request = {**body.request, "ClientToken": token}
        return _ask(self, replace(body, request=request))

    def unpaired(self: Any, attempt: LaunchAttempt) -> tuple[FleetInstance, ...]:
        return ()

    _ask = launcher.Launcher._create_fleet
    stack = contextlib.ExitStack()
    stack.enter_context(swapped(launcher.Launcher, _create_fleet=ask))
    stack.enter_context(swapped(slots.Pairing, unpaired=unpaired))
    return stack


def _no_fence() -> contextlib.AbstractContextManager[object, bool | None]:
    return swapped(FakeLedger, _fence=lambda self, lease: None)


def _no_reservation() -> contextlib.AbstractContextManager[object, bool | None]:
    """Open intents reserve nothing of the limits, and of a group only its cheapest option."""
    original = limits.used_capacity

    def used(snapshot: Any) -> Any:
        return original(replace(snapshot, intents=()))

    return swapped(limits, used_capacity=used)


def _no_dirty_mark() -> contextlib.AbstractContextManager[object, bool | None]:
    """Who does not get the lease goes away without a trace."""
    original = FakeLedger.acquire

    def acquire(self: FakeLedger, cluster: str, holder: str, now: datetime) -> Lease | None:
        lease = original(self, cluster, holder, now)
        if lease is None:
            self._leases[cluster].dirty = False
        return lease

    return swapped(FakeLedger, acquire=acquire)


def _loose_release() -> contextlib.AbstractContextManager[object, bool | None]:
    """Release first looks at the mark and then, in another call, gives the lease back."""
    original = recorder.Recorder.call

    def call(
        self: Any,
        process: Process,
        site: Site,
        cluster: str,
        found: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Any:
        if site.method != "release":
            return original(self, process, site, cluster, found, args, more)
        ledger: FakeLedger = found.__self__  # type: ignore[attr-defined]
        (lease,) = args

        def look(_: Lease) -> bool:
            row = ledger._leases.get(lease.cluster)
            dirty = row is not None and row.token == lease.token and row.dirty
            if row is not None and dirty:
                row.dirty = False
            return not dirty

        def free(_: Lease) -> bool:
            row = ledger._leases.get(lease.cluster)
            if row is not None and row.token == lease.token:
                row.free = True
            return True

        if not original(self, process, site, cluster, look, args, more):
            return False
        return original(self, process, site, cluster, free, args, more)

    return swapped(recorder.Recorder, call=call)


def _short_lease() -> contextlib.AbstractContextManager[object, bool | None]:
    """The lease is shorter than a call may take, and late calls are not fenced."""
    original = FakeLedger.__init__

    def init(self: FakeLedger, *args: Any, **more: Any) -> None:
        original(self, *args, **{**more, "lease_span": timedelta(seconds=10)})

    return swapped(FakeLedger, __init__=init)


def _no_ceiling() -> contextlib.AbstractContextManager[object, bool | None]:
    original = limits.limits_of

    def limits_of(snapshot: Any, used: Any) -> Any:
        return original(replace(snapshot, ceiling=None), used)

    stack = contextlib.ExitStack()
    stack.enter_context(swapped(limits, limits_of=limits_of))
    unchecked = {"affordable": lambda snapshot, nodes, of_cluster: (tuple(nodes), ())}
    stack.enter_context(swapped(provision, **unchecked))
    return stack


def _no_brakes() -> contextlib.AbstractContextManager[object, bool | None]:
    return swapped(session, held_back=lambda ports, rivals: "")


def _nothing_said() -> contextlib.AbstractContextManager[object, bool | None]:
    """Who fails to plan believes to have sent the message that plans again."""
    return swapped(provision_runtime.ProvisionRuntime, wake_later=lambda *_, **__: True)


def _taint_in_user_data() -> contextlib.AbstractContextManager[object, bool | None]:
    """The kubelet is asked for the taint that it adds by itself."""
    return swapped(launch_request, kubelet_taints=node_taints.node_taints)


def _no_first_status() -> contextlib.AbstractContextManager[object, bool | None]:
    """A Node is made without the amounts that the kubelet admits pods against."""
    original = node_objects.node_manifest

    def bare(*args: Any) -> NodeManifest:
        return replace(original(*args), capacity=Resources(), allocatable=Resources())

    return swapped(node_objects, node_manifest=bare)


def _errors_shared() -> contextlib.AbstractContextManager[object, bool | None]:
    """Whatever EC2 refuses one cluster counts as a shortage, for all clusters."""
    return swapped(
        refusal_log,
        kind_among=lambda _code, _codes: ErrorKind.SHORTAGE,
        is_shared_shortage=lambda _code: True,
    )


def _bound_while_open() -> contextlib.AbstractContextManager[object, bool | None]:
    """Promised pods are bound to a node that is open already."""
    original = node_binding.Binding._bind
    closing = Taint(key=keys.NOT_READY_TAINT, effect=Effect.NO_EXECUTE)

    def bind(self: Any, node: Node, slot: Slot | None, *args: Any) -> Any:
        shut = replace(node, taints=(*node.taints, closing))
        return original(self, shut, slot and replace(slot, opened=False), *args)

    return swapped(node_binding.Binding, _bind=bind)


def _node_before_machine() -> contextlib.AbstractContextManager[object, bool | None]:
    """A Node is made as soon as EC2 shows its machine."""
    return swapped(Instance, is_running=property(lambda _: True))


def _let_go_early() -> contextlib.AbstractContextManager[object, bool | None]:
    """The Node goes when its machine begins to shut down, whatever still runs on it."""
    original = termination.Termination._end_instance

    def end(self: Any, *args: Any, **_: Any) -> Any:
        return original(self, *args, clean=True)

    return swapped(termination.Termination, _end_instance=end, _runs_pods=lambda *_: False)


def _forced_early() -> contextlib.AbstractContextManager[object, bool | None]:
    """Pods are deleted without a grace period while their machine shuts down."""
    off = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
    stack = contextlib.ExitStack()
    stack.enter_context(swapped(interruption, _OFF=off))
    stack.enter_context(swapped(instance_terminator, _OFF=off))
    return stack


def _in_service() -> contextlib.AbstractContextManager[object, bool | None]:
    """A Node whose machine does not run gets no out-of-service taint."""
    return swapped(pod_eviction, _out_of_service=lambda _: None)


def _stopped_kept() -> contextlib.AbstractContextManager[object, bool | None]:
    """A machine that is stopped before it has a Node is left alone."""
    stack = contextlib.ExitStack()
    stack.enter_context(swapped(interruption, _STOPPED=frozenset()))
    gone = property(lambda self: not self.is_alive)
    stack.enter_context(swapped(Instance, is_terminating=gone))
    return stack


def _torn_copies() -> contextlib.AbstractContextManager[object, bool | None]:
    """The checksum of a copy is not compared."""
    return swapped(stored, _is_whole=lambda *_: True)


def _copies_of_any_version() -> contextlib.AbstractContextManager[object, bool | None]:
    return swapped(stored, _is_of_form=lambda _: True)


def _copies_of_any_cluster() -> contextlib.AbstractContextManager[object, bool | None]:
    return swapped(stored, _is_of_source=lambda *_: True)


def _no_look_for_drift() -> contextlib.AbstractContextManager[object, bool | None]:
    return swapped(KeptState, _has_pods_of=lambda *_: True, _has_node=lambda *_: True)


def _expired_copies_kept() -> contextlib.AbstractContextManager[object, bool | None]:
    """A copy whose version the API server has forgotten is used as it is."""
    return swapped(KeptCopy, _followed=_follow_or_stay)


def _follow_or_stay(self: Any, each_page: EachPage) -> bool:
    with contextlib.suppress(ExpiredError):
        self._follow(each_page)
    return True


def _frozen_not_awaited() -> contextlib.AbstractContextManager[object, bool | None]:
    """Whoever goes on with a launch believes that no earlier holder can still ask for it."""
    return swapped(IntentBook, in_doubt_until=lambda *_: None)


def _asked_again_at_once() -> contextlib.AbstractContextManager[object, bool | None]:
    """Who goes on with a launch does not wait until EC2 shows what was launched for it.

    No machine is doubled by that alone: frozen holders are waited for, and the same attempt has the
    same ClientToken. Pods wait for minutes instead of seconds, so the law is about the call.
    """
    return swapped(IntentBook, earliest=lambda _, intent: intent.not_before)


def _lease_left_alone() -> contextlib.AbstractContextManager[object, bool | None]:
    """The lease is as long as it was when it was acquired, but for writes of intents."""
    return swapped(HeldLease, renew_if_due=lambda self: self._lease, renew=lambda self: self._lease)


def _anybodys_machines() -> contextlib.AbstractContextManager[object, bool | None]:
    """Tags are not compared before TerminateInstances."""
    original = instance_terminator._status_of
    return swapped(
        instance_terminator, _status_of=lambda *args: replace(original(*args), ours=True)
    )


def _paired_again() -> contextlib.AbstractContextManager[object, bool | None]:
    """An instance whose node is complete is offered to another slot."""
    return swapped(slots.Pairing, _slot_name_of=lambda *_: None)


def _emptied_unread() -> contextlib.AbstractContextManager[object, bool | None]:
    """Pods of an empty node are not read again once it is cordoned."""
    return swapped(Emptiness, _is_empty=lambda *_: True)


def _postponed_in_silence() -> contextlib.AbstractContextManager[object, bool | None]:
    """A launch that is postponed sends no message: sweep finds it a minute later."""
    return swapped(PlanLauncher, wake_when_due=lambda _: None)


def _orphans_left() -> contextlib.AbstractContextManager[object, bool | None]:
    """Sweep leaves machines alone that neither a Node nor a slot knows."""
    return swapped(Sweep, _orphans=lambda *_: 0)


def _believed() -> contextlib.AbstractContextManager[object, bool | None]:
    """A Node is what it says it is, and nothing puts it right."""

    def believed(ports: object, nodes: Sequence[Node], *_: object) -> NodeFacts:
        return NodeFacts(nodes=tuple(nodes))

    stack = contextlib.ExitStack()
    for module in (gather, sweep):
        stack.enter_context(swapped(module, node_facts=believed))
    return stack


def _waiting_pods_forgotten() -> contextlib.AbstractContextManager[object, bool | None]:
    """Which pods an opened node is left to kube-scheduler for is not saved."""
    return swapped(node_binding, save_launched_for=lambda *_: None)


MUTATIONS: Final[Sequence[Mutation]] = (
    Mutation("intent written after the call", _intent_after_call),
    Mutation("no ClientToken, no adoption by tag", _no_token_no_adoption),
    Mutation("no fencing", _no_fence),
    Mutation("no reservation of limits", _no_reservation),
    Mutation("no dirty mark", _no_dirty_mark),
    Mutation("release is not atomic", _loose_release),
    Mutation("no message after a failed plan", _nothing_said),
    Mutation("lease shorter than the call", _short_lease),
    Mutation("no ceiling on nodes and dollars", _no_ceiling),
    Mutation("pause and shadow not looked at", _no_brakes),
    Mutation("taint of the cloud provider in user data", _taint_in_user_data),
    Mutation("status of a new Node forgotten", _no_first_status),
    Mutation("errors shared too widely", _errors_shared),
    Mutation("pods bound to a node that kube-scheduler uses", _bound_while_open),
    Mutation("Node made before its machine runs", _node_before_machine),
    Mutation("finalizer removed while the machine shuts down", _let_go_early),
    Mutation("pods deleted by force while their machine shuts down", _forced_early),
    Mutation("no out-of-service taint where volumes are attached", _in_service),
    Mutation("machines stopped before they are Nodes left alone", _stopped_kept),
    Mutation("checksum of copies not compared", _torn_copies),
    Mutation("copies of another version taken", _copies_of_any_version),
    Mutation("copies of another cluster taken", _copies_of_any_cluster),
    Mutation("copies not compared with the API server", _no_look_for_drift),
    Mutation("copies kept that the API server has forgotten", _expired_copies_kept),
    Mutation("frozen holders of the lease not waited for", _frozen_not_awaited),
    Mutation("EC2 asked again before it shows what it launched", _asked_again_at_once),
    Mutation("lease not renewed while its holder works", _lease_left_alone),
    Mutation("tags of machines not compared", _anybodys_machines),
    Mutation("machines of complete nodes paired again", _paired_again),
    Mutation("pods of an emptied node not read again", _emptied_unread),
    Mutation("no message for a postponed launch", _postponed_in_silence),
    Mutation("orphans left alone", _orphans_left),
    Mutation("what kubelets write believed", _believed),
    Mutation("pods that an open node was launched for forgotten", _waiting_pods_forgotten),
)


def hunt(name: str, most: int, first: int = 0) -> Catch:
    """Run schedules with a safeguard taken away until an invariant notices.

    A schedule that breaks one with the safeguard, too, says nothing.
    """
    mutation = next(mutation for mutation in MUTATIONS if mutation.name == name)
    for number in range(most):
        with mutation.patch():
            outcome = running.run_seed(first + number)
        if outcome.broken and not running.run_seed(first + number).broken:
            return Catch(name, number + 1, outcome.broken, outcome.seed, outcome.text)
    return Catch(name, most)
