"""Traces drawn by a seed. What each is like is said in its text; numbers are of orders of size that
are published, not of one published cluster.

Sources (2026-12): requests are log-normal and most pods small, Shan and others, "Characterizing and
orchestrating VM reservation in geo-distributed clouds" and Cortez and others, "Resource Central"
(SOSP 2017, https://doi.org/10.1145/3132747.3132772); daily curves with a peak of two to three times
the night, ibid.; run times of short jobs log-normal with a median of minutes, Tirmazi and others,
"Borg: the next generation" (EuroSys 2020, https://doi.org/10.1145/3342195.3387517).
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from shared.model import labels as keys
from tests.builders import GIB, MIB
from tests.simulation.cluster.workloads import JOB, STATEFUL
from tests.weeks.traces import HOUR, Change, Trace
from tests.weeks.workloads import Raw, Workload

GENERAL: Final = tuple(
    f"{kind}{generation}" for kind in "cmr" for generation in ("5", "5a", "6a", "6i", "7a", "7i")
)
_DAY: Final = 24.0
_WEEK: Final = 168.0
# Utilization is looked at this often, and acted on after as long down.
_HPA_SECONDS: Final = 300
_BUSY_SECONDS: Final = 840
_QUIET_SECONDS: Final = 600


def spread(name: str, key: str, *, hard: bool) -> Raw:
    """Return a topology spread of a workload over the values of a label, with maxSkew 1."""
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": name}},
    }


def apart(name: str) -> Raw:
    """Return the affinity that keeps a workload's pods on nodes of their own."""
    term = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": {"app": name}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def shop(seed: int) -> Trace:
    """Return a web shop: services that follow the day, with autoscalers."""
    rng = random.Random(f"shop {seed}")
    workloads, changes = [], []
    for number in range(10):
        name = f"shop-{number}"
        soft = [spread(name, keys.ZONE, hard=False)] if number % 2 else []
        workloads.append(_service(rng, name, extra={"topologySpreadConstraints": soft}))
        night, peak = rng.randint(1, 4), rng.randint(6, 18)
        changes += _daily(rng, name, _DAY, night, peak)
    return _trace("shop", _DAY, workloads, changes, "10 services follow a daily curve by HPAs")


def nightly(seed: int) -> Trace:
    """Return a few services, and at night hundreds of short jobs."""
    rng = random.Random(f"nightly {seed}")
    workloads, changes = _quiet(rng, 6)
    for night in range(7):
        for number in range(12):
            name = f"batch-{night}-{number}"
            begins = (night * 24 + 1 + rng.expovariate(1 / 1.2)) * HOUR
            cpu, memory = _size(rng, 900)
            minutes = min(rng.lognormvariate(math.log(12), 0.8), 90)
            job = Workload(
                name=name,
                kind=JOB,
                cpu=cpu,
                memory=memory * MIB,
                seconds=60 * minutes,
                starts_seconds=3,
            )
            workloads.append(job)
            changes.append(Change(begins, name, rng.randint(5, 40)))
    said = "6 services; each night 12 Jobs of 5 to 40 pods, minutes long"
    return _trace("nightly", _WEEK, workloads, changes, said)


def builds(seed: int) -> Trace:
    """Return a continuous integration: lone pods, by day, each for minutes."""
    rng = random.Random(f"builds {seed}")
    workloads, changes = _quiet(rng, 2)
    second, number = 0.0, 0
    while number < 900:
        hour = second / HOUR % 24
        rate = 1.3 if 8 <= hour < 18 else 0.12
        second += rng.expovariate(rate / 60)
        if second >= _DAY * HOUR:
            break
        name = f"build-{number}"
        cpu = rng.choice((500, 1000, 2000, 2000, 4000))
        minutes = min(rng.lognormvariate(math.log(6), 0.9), 60)
        workloads.append(
            Workload(
                name=name,
                kind=JOB,
                cpu=cpu,
                memory=cpu * rng.choice((1, 2, 3)) * MIB,
                seconds=60 * minutes,
                starts_seconds=2,
            )
        )
        changes.append(Change(second, name, 1))
        number += 1
    return _trace("builds", _DAY, workloads, changes, "lone pods of a CI by day, median 6 minutes")


def services(seed: int) -> Trace:
    """Return services with hard spreads, anti-affinity and budgets that are rolled out often."""
    rng = random.Random(f"services {seed}")
    workloads, changes = [], []
    for number in range(9):
        name = f"service-{number}"
        extra: Raw = {}
        if number % 3 == 0:
            extra = {"topologySpreadConstraints": [spread(name, keys.ZONE, hard=True)]}
        elif number % 3 == 1:
            extra = {"affinity": apart(name)}
        workloads.append(_service(rng, name, unavailable=1, extra=extra))
        few = number % 3 == 1
        replicas = rng.randint(2, 4) if few else rng.randint(3, 12)
        changes.append(Change(5.0, name, replicas))
        for _ in range(4):
            moment = rng.uniform(8, 19) * HOUR
            changes.append(Change(moment, name, replicas, rolls=True))
    said = "9 services with zone spreads or anti-affinity, PDBs, 36 rollouts by day"
    return _trace("services", _DAY, workloads, changes, said)


def stateful(seed: int) -> Trace:
    """Return StatefulSets that grow and shrink beside services."""
    rng = random.Random(f"stateful {seed}")
    workloads, changes = _quiet(rng, 4)
    for number in range(6):
        name = f"store-{number}"
        cpu, memory = _size(rng, 1200)
        workloads.append(
            Workload(
                name=name,
                kind=STATEFUL,
                cpu=cpu,
                memory=4 * memory * MIB,
                unavailable=1,
                starts_seconds=20,
                volumes=True,
                extra={"topologySpreadConstraints": [spread(name, keys.ZONE, hard=True)]},
            )
        )
        replicas = rng.randint(3, 5)
        changes.append(Change(5.0, name, replicas))
        for _ in range(3):
            more = max(replicas + rng.randint(-1, 3), 1)
            changes.append(Change(rng.uniform(1, 23) * HOUR, name, more))
    said = "6 StatefulSets with volumes over zones that are scaled, 4 services"
    return _trace("stateful", _DAY, workloads, changes, said)


def inference(seed: int) -> Trace:
    """Return models on GPUs that follow the day."""
    rng = random.Random(f"inference {seed}")
    workloads, changes = _quiet(rng, 3)
    for number in range(4):
        name = f"model-{number}"
        workloads.append(
            Workload(
                name=name,
                cpu=rng.choice((2000, 3000, 4000)),
                memory=rng.choice((8, 12, 14)) * GIB,
                gpus=1,
                unavailable=1,
                starts_seconds=45,
            )
        )
        changes += _daily(rng, name, _DAY, 1, rng.randint(2, 4))
    said = "4 models on a GPU a pod that follow a daily curve, 3 services"
    return _trace("inference", _DAY, workloads, changes, said, families=(*GENERAL, "g4dn", "g5"))


def quiet(seed: int) -> Trace:
    """Return a cluster of ten pods in which hardly anything happens."""
    rng = random.Random(f"quiet {seed}")
    workloads, changes = _quiet(rng, 5)
    for workload in workloads[:2]:
        moment = rng.uniform(30, 140) * HOUR
        changes.append(Change(moment, workload.name, 2, rolls=True))
    return _trace("quiet", _WEEK, workloads, changes, "10 pods of 5 services, 2 rollouts in a week")


def bursts(seed: int) -> Trace:
    """Return a quarter of an hour of batches that come and leave, and ten quiet minutes."""
    rng = random.Random(f"bursts {seed}")
    workloads, changes = [], []
    second, number = 5.0, 0
    while second < _BUSY_SECONDS:
        name = f"burst-{number}"
        count = min(max(round(rng.lognormvariate(math.log(7), 1.0)), 1), 40)
        extra: Raw = {}
        if count > 2 and rng.random() < 0.3:
            extra = {"topologySpreadConstraints": [spread(name, keys.ZONE, hard=True)]}
        unavailable = max(count // 4, 1) if rng.random() < 0.3 else None
        cpu, memory = _size(rng, 350)
        workloads.append(
            Workload(
                name=name,
                cpu=min(cpu, 2000),
                memory=min(memory, 8 * 1024) * MIB,
                unavailable=unavailable,
                starts_seconds=2,
                extra=extra,
            )
        )
        changes.append(Change(second, name, count))
        leaves = second + 40 + rng.lognormvariate(math.log(100), 0.7)
        while count and leaves < _BUSY_SECONDS and rng.random() < 0.9:
            count = count // 2 if rng.random() < 0.3 else 0
            changes.append(Change(leaves, name, count))
            leaves += 40 + rng.lognormvariate(math.log(100), 0.7)
        second += rng.expovariate(1 / 18)
        number += 1
    said = f"{number} Deployments of 1 to 40 pods come and leave in 14 minutes, then 10 are quiet"
    hours = (_BUSY_SECONDS + _QUIET_SECONDS) / HOUR
    return _trace("bursts", hours, workloads, changes, said)


Draw = Callable[[int], Trace]
DRAWN: Final[tuple[Draw, ...]] = (
    *(shop, nightly, builds, services),
    *(stateful, inference, quiet),
)
# Short enough for real components: played when it is named.
SHORT: Final[tuple[Draw, ...]] = (bursts,)


def drawn_by(words: str) -> Iterator[tuple[Trace, int]]:
    """Yield three traces, and their seeds, that a text decides."""
    rng = random.Random(words)
    for draw in rng.sample(DRAWN, 3):
        seed = rng.randrange(1000, 1_000_000)
        yield draw(seed), seed


def _service(
    rng: random.Random, name: str, unavailable: int | None = None, extra: Raw | None = None
) -> Workload:
    cpu, memory = _size(rng, 450)
    if unavailable is None and rng.random() < 0.5:
        unavailable = 1
    return Workload(
        name=name,
        cpu=cpu,
        memory=memory * MIB,
        unavailable=unavailable,
        starts_seconds=round(rng.uniform(2, 15), 1),
        extra=extra or {},
    )


def _quiet(rng: random.Random, count: int) -> tuple[list[Workload], list[Change]]:
    """Return services of two pods each that stay."""
    workloads = [_service(rng, f"service-{number}") for number in range(count)]
    return workloads, [Change(5.0, workload.name, 2) for workload in workloads]


def _size(rng: random.Random, median_millis: int) -> tuple[int, int]:
    """Return millicores and MiB: log-normal, one to six GiB a core."""
    cpu = min(max(round(rng.lognormvariate(math.log(median_millis), 0.8) / 50) * 50, 50), 6000)
    memory = round(cpu * min(max(rng.lognormvariate(math.log(2.5), 0.5), 0.8), 7.5) / 64) * 64
    return cpu, max(memory, 64)


def _daily(rng: random.Random, name: str, hours: float, night: int, peak: int) -> list[Change]:
    """Return what an autoscaler asks for over a day with its peak in the afternoon."""
    changes, second, last, lower = [], 5.0, 0, 0
    while second < hours * HOUR:
        height = max(0.0, math.sin((second / HOUR % 24 - 8) / 14 * math.pi)) ** 1.3
        wanted = max(1, round((night + (peak - night) * height) * rng.lognormvariate(0, 0.12)))
        # It grows at once, and shrinks when less was enough twice.
        lower = lower + 1 if wanted < last else 0
        if wanted > last or lower >= 2:
            changes.append(Change(second, name, wanted))
            last, lower = wanted, 0
        second += _HPA_SECONDS
    return changes


def _trace(
    name: str,
    hours: float,
    workloads: list[Workload],
    changes: Iterable[Change],
    said: str,
    families: tuple[str, ...] = (),
) -> Trace:
    return Trace(
        name=name,
        hours=hours,
        families=families or GENERAL,
        workloads=tuple(workloads),
        changes=tuple(sorted(changes)),
        said=said,
    )
