"""The fake and the table answer alike, whatever happens in whatever order."""

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.model.ec2.launches import Lease
from shared.model.errors import ConflictError
from shared.model.note import Note
from shared.model.values import replace
from shared.ports import Ledger
from tests.contract.aws.values import intent, offering, slot
from tests.fakes.clock import START, FakeClock
from tests.fakes.ledger import FakeLedger

CLUSTERS = ("one", "two")
Step = Callable[[Ledger, list[Lease]], object]


def some_lease(dice: random.Random, cluster: str) -> Lease:
    """Return a lease as a holder may have it, mostly an old one."""
    return Lease(
        cluster=cluster, holder="h", token=dice.randint(1, 4), expires_at=FakeClock().now()
    )


def lease_step(dice: random.Random, clock: FakeClock, cluster: str) -> Step:
    now, pick = clock.now(), dice.randint(0, 3)
    old = some_lease(dice, cluster)

    def step(ledger: Ledger, held: list[Lease]) -> object:
        lease = held[-1] if held and pick else old
        if pick == 1:
            return ledger.renew(lease, now)
        if pick == 2:
            return ledger.release(lease)
        taken = ledger.acquire(cluster, "h", now)
        if taken is not None:
            held.append(taken)
        return taken

    return step


def launch_step(dice: random.Random, cluster: str) -> Step:
    what = dice.randint(0, 6)
    planned = intent(
        cluster=cluster,
        plan_id=f"p{dice.randint(1, 2)}",
        attempt=dice.randint(0, 2),
    )
    filled = slot(cluster=cluster, number=dice.randint(0, 2), instance_id=f"i-{dice.randint(1, 3)}")
    old = some_lease(dice, cluster)
    stale = dice.random() < 0.1

    def step(ledger: Ledger, held: list[Lease]) -> object:
        lease = held[-1] if held and not stale else old
        steps: tuple[Callable[[], object], ...] = (
            lambda: ledger.open_intent(lease, planned, START),
            lambda: ledger.change_intent(lease, planned, START),
            lambda: ledger.close_intent(lease, planned, START),
            lambda: ledger.fill_slot(lease, filled),
            lambda: ledger.change_slot(replace(filled, node_name="n", bound=True)),
            lambda: ledger.drop_slot(filled),
            lambda: ledger.drop_instance(filled.instance_id),
        )
        return steps[what]()

    return step


def account_step(dice: random.Random, clock: FakeClock, cluster: str) -> Step:
    now, what = clock.now(), dice.randint(0, 3)
    some = [offering(zone=f"us-east-1{dice.choice('ab')}") for _ in range(dice.randint(0, 2))]
    memo = Note(name=f"memo-{dice.randint(1, 2)}", value={"at": now.isoformat()})

    def step(ledger: Ledger, _: list[Lease]) -> object:
        steps: tuple[Callable[[], object], ...] = (
            lambda: ledger.mark_unavailable(some, now),
            lambda: ledger.take_token("CreateFleet", now),
            lambda: ledger.put_note(cluster, memo, now + timedelta(days=1)),
            lambda: ledger.drop_note(cluster, memo.name),
        )
        return steps[what]()

    return step


def outcome(step: Step, ledger: Ledger, held: list[Lease]) -> object:
    try:
        return step(ledger, held)
    except ConflictError:
        return ConflictError


def everything(ledger: Ledger, clock: FakeClock) -> object:
    now = clock.now()
    return (
        [
            (ledger.open_intents(value), ledger.slots(value), ledger.notes(value, ""))
            for value in CLUSTERS
        ],
        [ledger.abandoned(value, now) for value in CLUSTERS],
        [ledger.cluster_of(f"i-{n}") for n in (1, 2, 3)],
        ledger.unavailable_offerings(now),
    )


@pytest.mark.parametrize("seed", range(4))
def test_fake_and_table_agree(aws: Session, table: str, clock: FakeClock, seed: int) -> None:
    dice = random.Random(seed)
    ledgers: tuple[Ledger, ...] = (FakeLedger(), DynamoLedger(aws, table=table, clock=clock))
    held: dict[str, tuple[list[Lease], list[Lease]]] = {value: ([], []) for value in CLUSTERS}
    for number in range(70):
        clock.advance(timedelta(milliseconds=dice.choice((1, 250, 9_000, 70_000))))
        cluster = dice.choice(CLUSTERS)
        step = dice.choice(
            (
                lease_step(dice, clock, cluster),
                launch_step(dice, cluster),
                launch_step(dice, cluster),
                account_step(dice, clock, cluster),
            )
        )
        fake, real = (
            outcome(step, ledger, mine) for ledger, mine in zip(ledgers, held[cluster], strict=True)
        )
        assert fake == real, f"step {number}"
        if number % 5 == 4:
            fake, real = (everything(ledger, clock) for ledger in ledgers)
            assert fake == real, f"after step {number}"
