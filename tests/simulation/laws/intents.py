"""What must hold of open intents: none is left alone, asked for too early, or overtaken."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from shared.model import labels as keys
from shared.model.ec2.launches import LaunchIntent, Lease
from shared.model.policy import LaunchPolicy
from tests.simulation.aws.machines import Machine
from tests.simulation.laws.launches import MESSAGES, fail, tags_of
from tests.simulation.schedule.faults import Site
from tests.simulation.schedule.kernel import Process

if TYPE_CHECKING:
    from tests.simulation.schedule.world import World

_WRITES: Final = frozenset({"open_intent", "change_intent", "close_intent"})
# The calls of provision whose answers are watched.
OF_INTENTS: Final = _WRITES | MESSAGES | {"acquire", "open_intents"}
_POLICY: Final = LaunchPolicy()
# A message that goes on with a launch comes by so much later than it could: calls may be slow.
_PUNCTUAL: Final = timedelta(seconds=45)
_Key = tuple[str, int]


class IntentLaws:
    """Watches what invocations of provision read and write of intents.

    Three of these laws are about the call, the message and the attempt, not about what comes of it:
    behind each of the safeguards stands another, and in the end something only happens later.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        # By invocation: whether it had the lease, the open intents as it read them last, as it
        # left them, and when the first message comes that it sent.
        self._led: set[int] = set()
        self._read: dict[int, dict[_Key, LaunchIntent]] = {}
        self._left: dict[int, dict[_Key, LaunchIntent]] = {}
        self._comes: dict[int, datetime] = {}

    def after(self, process: Process, site: Site, args: tuple[Any, ...], answer: Any) -> None:
        number = process.number
        match site.method:
            case "acquire":
                if isinstance(answer, Lease):
                    self._led.add(number)
            case "open_intents":
                self._read[number] = {_key(intent): intent for intent in answer}
                self._left[number] = dict(self._read[number])
            case "close_intent":
                self._left.get(number, {}).pop(_key(args[1]), None)
            case method if method in _WRITES:
                self._left.setdefault(number, {})[_key(args[1])] = args[1]
            case _:
                delay = args[1] if len(args) > 1 else timedelta(0)
                comes = self._world.kernel.now() + delay
                self._comes[number] = min(comes, self._comes.get(number, comes))

    def asked(self, process: Process, request: Any) -> None:
        """Check that EC2 is asked again only when it shows what an earlier call launched.

        No machine is doubled if it is: the same attempt has the same token, and what an earlier
        holder may still ask for is waited for. But what EC2 does not show yet is missed, and its
        pods wait for minutes.
        """
        tags = tags_of(request)
        key = tags[keys.TAG_PLAN], int(tags[keys.TAG_GROUP])
        known = self._read.get(process.number, {}).get(key)
        if known is None or known.asked_at is None or process.is_astray:
            return
        now = self._world.kernel.now() + process.skew
        again = known.attempt == int(tags[keys.TAG_ATTEMPT])
        if again and now < known.asked_at + _POLICY.consistency_delay:
            fail("shown", f"{key[0]}/{key[1]}: EC2 is asked before it shows what it launched")

    def launched(self, machine: Machine) -> None:
        """Check that what EC2 launches is what an open intent asks for, even of a frozen holder.

        Nobody goes on from an attempt that an earlier holder may still ask for.
        """
        tags = machine.instance.tags
        plan, group = tags[keys.TAG_PLAN], int(tags[keys.TAG_GROUP])
        intent = self._world.ledger.intents.get((machine.cluster, plan, group))
        if intent is None or intent.attempt > int(tags[keys.TAG_ATTEMPT]):
            fail("unsettled", f"{plan}/{group}: launched for an attempt that was given up")

    def ended(self, process: Process, outcome: object) -> None:
        """Check that a holder that leaves a launch open has sent a message for its time.

        Sweep finds it within a minute, too: only this law sees that nothing else would.
        """
        self._read.pop(process.number, None)
        left, comes = self._left.pop(process.number, {}), self._comes.pop(process.number, None)
        if process.number not in self._led or process.is_astray or not isinstance(outcome, dict):
            return
        if outcome["batchItemFailures"]:
            return
        now = self._world.kernel.now()
        settles = _POLICY.invocation_timeout + _POLICY.consistency_delay
        for (plan, group), intent in left.items():
            settled = intent.asked_at + settles if intent.asked_at is not None else now
            due = max(intent.not_before or now, settled, now)
            if comes is None or comes > due + _PUNCTUAL:
                fail("due", f"{plan}/{group} waits until {due:%H:%M:%S}, and nothing wakes it")


def _key(intent: LaunchIntent) -> _Key:
    return intent.plan_id, intent.group
