"""Running schedules, and finding the smallest set of faults that still breaks one."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from tests.simulation.aws.delivery import VISIBILITY_SECONDS
from tests.simulation.aws.functions import UnexpectedError, cut
from tests.simulation.laws.launches import ViolationError
from tests.simulation.laws.quiescence import unrest
from tests.simulation.schedule.faults import CRASHES, CallFault, CallFaults, Site
from tests.simulation.schedule.kernel import micros
from tests.simulation.schedule.scenario import Scene, draw_scene
from tests.simulation.schedule.world import World

MESSAGES: Final = 40
FAULTS: Final = 3
_STEP: Final = 15_000_000
# By so much a schedule goes on in which too little has happened, at most so often. What is said
# while all comes to rest counts, too.
_LONGER: Final = 30_000_000
_EXTENSIONS: Final = 60
_AT_REST: Final = 3
PATIENCE_SECONDS: Final = 1500
# The longest anything may stay as it must not be once faults are over, where sweep is on.
LONGEST_SECONDS: Final = 720
# After this nothing more is expected where a message was lost and sweep is off.
_LONG_ENOUGH_SECONDS: Final = 120


@dataclass
class Outcome:
    """How one schedule went.

    Attributes:
        broken: Name of the invariant that did not hold, empty when all did.
        quiet_seconds: From the last fault until all was quiet.
    """

    scene: Scene
    broken: str = ""
    text: str = ""
    messages: int = 0
    invocations: int = 0
    machines: int = 0
    checks: int = 0
    quiet_seconds: float = 0.0
    fired: tuple[CallFault, ...] = ()
    sites: frozenset[Site] = frozenset()
    log: list[str] = field(default_factory=list)
    longest: dict[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether enough happened to call it a schedule."""
        return self.messages >= MESSAGES and len(self.fired) >= FAULTS

    @property
    def seed(self) -> int:
        return self.scene.seed

    @property
    def crashed(self) -> frozenset[tuple[Site, str]]:
        return frozenset(
            (entry.site, CRASHES[entry.action]) for entry in self.fired if entry.action in CRASHES
        )


def run_scene(scene: Scene, faults: CallFaults, *, log: bool = False) -> Outcome:
    """Run one schedule to its end, or until an invariant is broken."""
    faults.until = round(scene.busy_seconds * 1e6)
    world = World(scene, faults)
    outcome = Outcome(scene)
    if log:
        world.recorder.log = outcome.log
    dead = world.delivery.dead
    with cut(world.functions, lambda text, reason: dead.append(f"{reason}: {text}")):
        try:
            _run(world, outcome)
        except (ViolationError, UnexpectedError) as error:
            outcome.broken = error.name if isinstance(error, ViolationError) else "unexpected"
            outcome.text = str(error)
        finally:
            world.kernel.end()
    outcome.scene = replace(scene, busy_seconds=faults.until / 1e6)
    outcome.messages = world.delivery.messages
    outcome.invocations = world.functions.invocations
    outcome.machines = len(world.region.machines)
    outcome.checks = world.invariants.checks
    outcome.fired = tuple(faults.fired)
    outcome.sites = frozenset(count for count in faults.counts if count.function in _KINDS)
    world.close()
    return outcome


_KINDS: Final = frozenset(
    {
        "provision",
        "bind",
        "emptiness",
        "expiration",
        "registration",
        "replacement",
        "termination",
        "interrupt",
        "sweep",
    }
)


def _run(world: World, outcome: Outcome) -> None:
    kernel = world.kernel
    busy = _busy(world) if world.faults.exact is None else world.faults.until
    busy = max(busy, world.weather.bad_until)
    kernel.run_until(busy)
    since: dict[str, int] = {}
    while kernel.time < busy + PATIENCE_SECONDS * 1_000_000:
        kernel.run_until(kernel.time + _STEP)
        left = unrest(world)
        if not left:
            outcome.quiet_seconds = (kernel.time - busy) / 1e6
            break
        since = {value: since.get(value, kernel.time) for value in left}
        oldest, begun = min(since.items(), key=lambda entry: entry[1])
        lasted = (kernel.time - begun) / 1e6
        name = oldest.split(":")[0]
        outcome.longest[name] = max(outcome.longest.get(name, 0.0), lasted)
        if lasted >= _LONG_ENOUGH_SECONDS and _excused(world):
            break
        if lasted >= _longest_seconds(world):
            raise ViolationError(name, f"for {lasted:.0f} s {oldest}")
    for api in world.apis.values():
        api.read_on()
    if world.delivery.dead:
        raise ViolationError("dead letter", world.delivery.dead[0])
    if world.timers.failed:
        raise ViolationError("timer", world.timers.failed[0])


def _longest_seconds(world: World) -> int:
    """Return how long anything may stay wrong.

    Without sweep, what a dying function left is taken up when its record is visible again.
    """
    return LONGEST_SECONDS + (0 if world.scene.sweeps else VISIBILITY_SECONDS)


def _excused(world: World) -> bool:
    """Return whether only sweep could have healed what went wrong, and it is switched off."""
    delivery = world.delivery
    lost = delivery.lost or delivery.early or world.timers.lost or _released(world)
    return not world.scene.sweeps and bool(lost or world.invariants.launches.forsaken())


def _released(world: World) -> bool:
    """Return whether a user removed the finalizer of a Node: only sweep finds its machine."""
    return any(side.released for side in world.sides.values())


def _busy(world: World) -> int:
    """Let users and faults go on until enough has happened; return until when they do.

    The last microsecond is left to the caller: a replay of what fired knows the end from the
    beginning, and must find the same.
    """
    kernel, faults = world.kernel, world.faults
    for _ in range(_EXTENSIONS):
        kernel.run_until(faults.until - 1)
        enough = MESSAGES - (0 if world.scene.whole else _AT_REST)
        if world.delivery.messages >= enough and len(faults.fired) >= FAULTS:
            break
        faults.until += _LONGER
    return faults.until


def run_seed(seed: int, *, log: bool = False) -> Outcome:
    """Run the schedule of a seed, with at least 3 faults and 40 messages."""
    scene = draw_scene(seed)
    outcome = run_scene(scene, CallFaults(seed, share=scene.share), log=log)
    if outcome.broken or outcome.counts:
        return outcome
    return run_scene(replace(scene, whole=True), CallFaults(seed, share=scene.share), log=log)


def shrink(outcome: Outcome, most: int = 120) -> Outcome:
    """Return the outcome with as few faults as still break the same invariant."""
    scene = outcome.scene
    faults = list(outcome.fired)
    best = outcome
    tries, size = 0, max(len(faults) // 2, 1)
    while tries < most:
        smaller = _without_some(scene, faults, size, outcome.broken)
        tries += -(-len(faults) // size)
        if smaller is not None:
            best, faults = smaller, list(smaller.fired)
        elif size == 1:
            break
        size = max(min(size, len(faults)) // (1 if smaller is not None else 2), 1)
        if not faults:
            break
    return best


def _without_some(scene: Scene, faults: list[CallFault], size: int, broken: str) -> Outcome | None:
    for start in range(0, len(faults), size):
        kept = [*faults[:start], *faults[start + size :]]
        outcome = run_scene(scene, exactly(scene, kept), log=True)
        if outcome.broken == broken:
            return outcome
    return None


def exactly(scene: Scene, faults: Iterable[CallFault]) -> CallFaults:
    """Return a plan of exactly these faults, all other choices as the seed makes them."""
    return CallFaults(seed=scene.seed, exact=frozenset(faults))


__all__ = ["Outcome", "exactly", "micros", "run_scene", "run_seed", "shrink"]
