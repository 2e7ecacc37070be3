"""One forwarder sends as much as a bus takes: what other clusters get of the functions meanwhile.

Lambda is emulated by its limits: a function runs at most its reserved concurrency at once, and what
comes meanwhile waits in the order it came until it is too old.
Source: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html and
https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html (2026-11).
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

import pytest

from infra.aws.functions import FUNCTIONS
from shared.model.messages.message import FORWARDED, SOURCE_PREFIX, MessageKind
from shared.model.messages.message_rate import MessageRate
from tests.builders import NOW
from tests.infra.templates import Template

PLANS: Final = {plan.name: plan for plan in FUNCTIONS}
FLOODER: Final = "flooder"
OTHERS: Final = tuple(f"cluster-{number}" for number in range(30))
# Messages a second of each kind: PutEvents takes up to 10,000 a second of an account.
# Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html (2026-11).
FLOOD: Final = 2000
SECONDS: Final = 20
# What an invocation takes: of the kinds with calls to the API server and AWS, and one that drops.
WORK_MS: Final = 60
SWEEP_MS: Final = 2000
DROP_MS: Final = 2


class Call(NamedTuple):
    """One invocation that is asked for, in milliseconds."""

    at: int
    cluster: str
    kind: MessageKind


def calls_of(kinds: Iterable[MessageKind]) -> Iterator[Call]:
    """Yield what a function is asked for, in order: the flood, and one of each other cluster."""
    kinds = list(kinds)
    for tick in range(SECONDS * 1000):
        if MessageKind.SWEEP in kinds and tick == 10_000:
            yield from (Call(tick, cluster, MessageKind.SWEEP) for cluster in OTHERS)
        for kind in kinds:
            if kind in FORWARDED and tick % 5 == 0:
                yield from (Call(tick, FLOODER, kind),) * (FLOOD // 200)
            if kind in FORWARDED and tick % 2000 == 500 and tick // 2000 < len(OTHERS):
                yield Call(tick, OTHERS[tick // 2000], kind)


def served(name: str, kinds: Iterable[MessageKind]) -> Mapping[tuple[str, MessageKind], list[int]]:
    """Return how long each invocation waited, by cluster and kind; one that is dropped not."""
    plan = PLANS[name]
    free = [(0, number) for number in range(plan.concurrency)]
    rates = [MessageRate() for _ in free]
    waits: dict[tuple[str, MessageKind], list[int]] = defaultdict(list)
    for call in calls_of(kinds):
        idle, process = free[0]
        start = max(call.at, idle)
        if start - call.at > plan.async_max_age_seconds * 1000:
            continue
        now = NOW + timedelta(milliseconds=start)
        forwarded = call.kind in FORWARDED
        if forwarded and rates[process].dropped_before(call.cluster, call.kind, now) is None:
            heapq.heapreplace(free, (start + DROP_MS, process))
            continue
        waits[call.cluster, call.kind].append(start - call.at)
        took = SWEEP_MS if call.kind == MessageKind.SWEEP else WORK_MS
        heapq.heapreplace(free, (start + took, process))
    return waits


def routes(template: Template) -> Mapping[str, set[MessageKind]]:
    """Return which messages of forwarders invoke a function."""
    found: dict[str, set[MessageKind]] = defaultdict(set)
    names = {
        function.logical_id: function.properties["FunctionName"].removeprefix("dovetail-")
        for function in template.of("AWS::Lambda::Function")
    }
    for rule in template.of("AWS::Events::Rule"):
        pattern = rule.properties.get("EventPattern", {})
        if pattern.get("source") == [{"prefix": SOURCE_PREFIX}]:
            (target,) = rule.raw["Properties"]["Targets"]
            name = names.get(target["Arn"]["Fn::GetAtt"][0])
            if name is not None:
                found[name.replace("-", "_")] |= {
                    MessageKind(kind) for kind in pattern["detail-type"]
                }
    return found


def test_a_forwarder_that_floods_delays_no_sweep_and_no_message_of_another_cluster(
    control_plane: Template,
) -> None:
    told = routes(control_plane)
    assert set().union(*told.values()) == set(FORWARDED) - {MessageKind.PROVISIONER_CHANGED}
    late: Counter[str] = Counter()
    for name in {*told, "sweep"}:
        kinds = {*told.get(name, ()), *((MessageKind.SWEEP,) if name == "sweep" else ())}
        waits = served(name, sorted(kinds))
        for kind in kinds:
            others = [waits.get((cluster, kind), []) for cluster in OTHERS]
            expected = len(OTHERS) if kind == MessageKind.SWEEP else SECONDS // 2
            assert sum(map(len, others)) == expected, (name, kind)
            late[name] = max(late[name], *(wait for one in others for wait in one))
    # Milliseconds: what is asked for in a minute begins in it.
    assert max(late.values()) < 1000, late


@pytest.mark.parametrize("name", ["sweep", "refresh_catalog", "expiration", "interrupt"])
def test_no_message_of_a_forwarder_invokes_what_others_wait_for(
    control_plane: Template, name: str
) -> None:
    assert name not in routes(control_plane)
