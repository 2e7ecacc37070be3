"""What must hold of leases and launches at each call: one holder, intent first, nothing twice."""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from shared.model import labels as keys
from shared.model.ec2.launches import LaunchIntent, Lease, Slot
from shared.model.errors import NotFoundError, RetryableError
from shared.snapshot.launch_body import LaunchAttempt, LaunchBody
from tests.simulation.aws.machines import Machine
from tests.simulation.schedule.faults import Site
from tests.simulation.schedule.kernel import Killed, Process

if TYPE_CHECKING:
    from tests.simulation.schedule.world import World

FENCED: Final = frozenset({"open_intent", "change_intent", "close_intent", "fill_slots"})
# The calls of provision that are watched: before they are carried out, and their answers.
LAUNCHING: Final = FENCED | {"acquire", "release", "create_fleet"}
MESSAGES: Final = frozenset({"wake", "evaluate"})
ANSWERED: Final = FENCED | MESSAGES | {"acquire", "bound_pods", "pending_pods", "release"}
# For so long what a holder with a wrong clock wrote may mislead others, in microseconds.
_MISLED: Final = 600_000_000
_SKEW: Final = timedelta(seconds=7)


class ViolationError(AssertionError):
    """An invariant did not hold; the first word names it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text)
        self.name = name

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


def fail(name: str, text: str) -> NoReturn:
    raise ViolationError(name, text)


class LaunchLaws:
    """Watches the calls of provision.

    Leases and intents say times. A holder whose clock is minutes wrong takes a lease too early, or
    writes one that is over at once, and goes on from what another may still ask for: a machine may
    be launched twice then, and limits be exceeded by it. That nothing is left over holds all the
    same. AWS refuses calls of a process whose clock is wrong by more than five minutes.

    Source: https://repost.aws/knowledge-center/lambda-sdk-signature (2026-11).
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._leases: dict[int, Lease] = {}
        self._stale: dict[int, bool] = {}
        self._unheard: dict[str, int] = {}
        self._owing: dict[int, str] = {}
        self._bound: dict[int, dict[str, str]] = {}
        self._said: set[int] = set()
        self._unsaid: set[str] = set()
        self._launched: Counter[tuple[str, str, str]] = Counter()
        # By cluster: who took the lease last, and until when one with a wrong clock may mislead.
        self._holders: dict[str, Process] = {}
        self._misled_until: dict[str, int] = {}

    def before(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        if site.method in FENCED or site.method == "release":
            self._stale[process.number] = self._is_stale(args[0])
        elif site.method == "acquire":
            self._may_take_over(process, args[0], args[2])
        elif site.method == "create_fleet":
            self._asked(process, cluster, args[0])

    def after(
        self, process: Process, site: Site, args: tuple[Any, ...], answer: Any, cluster: str
    ) -> None:
        match site.method:
            case "bound_pods":
                self._bound[process.number] = {pod.uid: pod.node_name for pod in answer}
            case "acquire":
                if isinstance(answer, Lease):
                    self._holders[args[0]] = process
                    if process.is_wrong:
                        self._misled_until[args[0]] = self._world.kernel.time + _MISLED
                    self._leases[process.number] = answer
                    # The new holder now serves the processes that an earlier holder refused.
                    self._unheard.pop(args[0], None)
                    self._unsaid.discard(args[0])
                else:
                    self._unheard[args[0]] = self._unheard.get(args[0], 0) + 1
            case method if method in MESSAGES:
                self._owing.pop(process.number, None)
                self._said.add(process.number)
            case "pending_pods" if process.number in self._leases:
                self._owing.pop(process.number, None)
                # It plans once more: the release before did not succeed.
                process.called.discard("release")
                if not self._is_stale(self._leases[process.number]):
                    self._unheard.pop(cluster, None)
            case "release":
                self._released(process, args[0], answer)
            case method if method in FENCED:
                self._fenced(process, site, args, answer)

    def ended(self, process: Process, outcome: object) -> None:
        """Check that a process that was asked to look again did so, or that another will."""
        cluster = self._owing.pop(process.number, None)
        if cluster is None or (isinstance(outcome, dict) and outcome["batchItemFailures"]):
            return
        # Lambda or the queue repeats an invocation that tried to send a message and failed.
        unsaid = bool(process.called & MESSAGES) and isinstance(outcome, RetryableError)
        holds = self._holders.get(cluster) is process and self._world.ledger.is_held(cluster)
        if isinstance(outcome, Killed) and holds:
            self._unheard[cluster] = self._unheard.get(cluster, 0) + 1
        elif isinstance(outcome, Killed) or unsaid:
            self._unsaid.add(cluster)
        else:
            fail("wake", f"{cluster}: {process.function} promised to look again: {outcome!r}")

    def launched(self, machine: Machine) -> None:
        """Check that a group has no more machines than planned nodes."""
        tags = machine.instance.tags
        key = (machine.cluster, tags[keys.TAG_PLAN], tags[keys.TAG_GROUP])
        self._launched[key] += 1
        if self.is_misled(machine.cluster):
            return
        if self._world.scene.slow:
            return
        alive = sum(
            1
            for machine in self._world.region.alive(machine.cluster)
            if (
                machine.instance.tags[keys.TAG_PLAN],
                machine.instance.tags[keys.TAG_GROUP],
            )
            == key[1:]
        )
        body = self._world.decisions.documents.get(f"launches/{key[0]}/{key[1]}/{key[2]}-0.json")
        planned = len(_attempt_in(body).slots) if body else 0
        if alive > planned:
            fail("double", f"{'/'.join(key)}: {alive} machines for {planned} planned nodes")

    def is_misled(self, cluster: str) -> bool:
        """Return whether a holder with a wrong clock may have misled others, or itself."""
        return self._world.kernel.time < self._misled_until.get(cluster, 0)

    def was_misled(self, cluster: str) -> bool:
        """Return whether a cluster ever had a holder with a wrong clock."""
        return cluster in self._misled_until

    def forsaken(self) -> bool:
        """Return whether a leader died that owed another look to a message already deleted.

        It was asked to look again and cannot, nor could it send a message. Only sweep repeats the
        look.
        """
        if self._unsaid:
            return True
        ledger, now = self._world.ledger, self._world.kernel.now()
        return any(count and ledger.abandoned(value, now) for value, count in self._unheard.items())

    # --- inside

    def _is_stale(self, lease: Lease) -> bool:
        row = self._world.ledger._leases.get(lease.cluster)
        return row is None or row.token != lease.token or row.free

    def _released(self, process: Process, lease: Lease, answer: object) -> None:
        stale = self._stale.pop(process.number, False)
        if stale:
            return
        if answer is False:
            # Told: from here it is the holder's to look again, or to send a message.
            self._unheard.pop(lease.cluster, None)
            if process.number not in self._said:
                self._owing[process.number] = lease.cluster
                # Only a message that is tried from now on says that there is more to do.
                process.called -= MESSAGES
        elif self._unheard.pop(lease.cluster, 0):
            fail("wake", f"{lease.cluster}: released, and no process looks for those it refused")

    def _asked(self, process: Process, cluster: str, request: Mapping[str, Any]) -> None:
        """Check that EC2 is asked by the holder of the lease only, and that an intent says so."""
        tags = tags_of(request)
        plan, group = tags[keys.TAG_PLAN], int(tags[keys.TAG_GROUP])
        intent = self._world.ledger.intents.get((cluster, plan, group))
        lease = self._leases.get(process.number)
        if process.is_astray or self.is_misled(cluster):
            return
        if intent is None or intent.attempt < int(tags[keys.TAG_ATTEMPT]):
            fail("intent", f"{plan}/{group}: EC2 is asked and no open intent says so")
        row = self._world.ledger._leases.get(cluster)
        now = self._world.kernel.now()
        if lease is None or row is None or row.token != lease.token or row.until + _SKEW < now:
            fail("holder", f"{plan}/{group}: EC2 is asked by one whose lease is over")

    def _may_take_over(self, process: Process, cluster: str, now: datetime) -> None:
        """Check that a lease is only taken from one who is dead, frozen, or wrong about the time.

        Whoever works on pushes it on, though each call takes seconds.
        """
        row = self._world.ledger._leases.get(cluster)
        holder = self._holders.get(cluster)
        if row is None or row.free or row.until >= now or holder is None:
            return
        if holder.is_astray or process.is_astray or row.holder != f"request-{holder.number}":
            return
        # Whether or not its release reached the ledger, it does no more that needs the lease.
        if self._world.kernel.lives(holder) and "release" not in holder.called:
            fail("kept", f"{cluster}: {holder.number} works on and loses its lease")

    def _are_ours(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            machine = self._world.region.machines.get(slot.instance_id)
            if machine is None or not machine.is_ours:
                fail("foreign", f"{slot.name} is filled with {slot.instance_id}, which is not ours")

    def _fenced(self, process: Process, site: Site, args: tuple[Any, ...], answer: object) -> None:
        if self._stale.pop(process.number, False) and answer is not False:
            fail("fence", f"{site} succeeded under a lease that was lost")
        if site.method == "fill_slots":
            self._are_ours(args[1])
        if site.method == "open_intent":
            self._promised_once(args[1])
            self._for_waiting(args[1], self._bound.get(process.number, {}))

    def _promised_once(self, intent: LaunchIntent) -> None:
        """Check that no pod of a new launch is promised to another node already.

        One that has found a place is free for what replaces that node, if nothing does already:
        what was to replace another node is not for it any more. One that is gone is for none.
        """
        ledger, decisions = self._world.ledger, self._world.decisions
        mine = _pods_of(decisions.documents[intent.body_key])
        pods = self._world.apis[intent.cluster].pods.values()
        places = {pod.uid: pod.node_name for pod in pods}

        def waits(uid: str, replaced: str) -> bool:
            return uid in places and places[uid] in ("", *replaced.split(","))

        others: dict[str, str] = {
            ref.uid: slot.name
            for slot in ledger.slots(intent.cluster)
            for ref in slot.pods
            if waits(ref.uid, "" if slot.bound else slot.replaces)
        }
        for open_intent in ledger.open_intents(intent.cluster):
            if (open_intent.plan_id, open_intent.group) != (intent.plan_id, intent.group):
                try:
                    attempt = _attempt_in(decisions.get(open_intent.body_key))
                except NotFoundError:
                    continue
                refs = [ref.uid for slot in attempt.slots for ref in slot.pods]
                promised = f"{open_intent.plan_id}/{open_intent.group}"
                others |= {uid: promised for uid in refs if waits(uid, attempt.replaces)}
        twice = sorted(uid for uid in mine if uid in others)
        if twice:
            fail("twice", f"{intent.plan_id}: {twice[0]} is promised to {others[twice[0]]}")

    def _for_waiting(self, intent: LaunchIntent, bound: Mapping[str, str]) -> None:
        """Check that no pod of a new launch had a node that stays, as far as the plan could see.

        Args:
            bound: By pod, the node that the last list of pods showed before the plan.
        """
        body = self._world.decisions.documents[intent.body_key]
        nodes = self._world.apis[intent.cluster].node_values
        going = {name for name, node in nodes.items() if node.deletion_at}
        going.update(_attempt_in(body).replaces.split(","))
        for uid in sorted(_pods_of(body)):
            if bound.get(uid) in nodes.keys() - going:
                fail("served", f"{intent.plan_id}: {uid} runs on {bound[uid]}")


def tags_of(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of what a CreateFleet request launches."""
    return {
        tag["Key"]: tag["Value"] for spec in request["TagSpecifications"] for tag in spec["Tags"]
    }


@functools.lru_cache(64)
def _attempt_in(body: bytes) -> LaunchAttempt:
    return LaunchBody.from_bytes(body).attempt


def _pods_of(body: bytes) -> frozenset[str]:
    attempt = _attempt_in(body)
    return frozenset(ref.uid for slot in attempt.slots for ref in slot.pods)
