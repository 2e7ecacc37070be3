"""What looks at a cluster leave each other fits into a row of the ledger."""

from datetime import timedelta
from typing import Any

import pytest

from shared.aws.ledger.ledger import DynamoLedger
from shared.disruption.pod_changes import pod_digests, recently_changed
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.ports import Ledger
from shared.provisioning.node_observations import NodeObservations, update_observations
from tests.builders import node_of, provisioner
from tests.fakes.clock import FakeClock
from tests.scale.table import CountedTable
from tests.unit.disruption.clusters import LATER, cluster, on

MINUTE = timedelta(minutes=1)
OWNER = provisioner(consolidation=True, consolidate_after=10 * MINUTE)
NAME = "pods-seen-since"


def of_nodes(count: int) -> ClusterSnapshot:
    names = [f"node-{number:05}" for number in range(count)]
    at = LATER - timedelta(hours=1, microseconds=1)
    nodes = [node_of(name, created_at=at) for name in names]
    bound = tuple(on(name, started_at=at) for name in names)
    return cluster(*nodes, bound=bound, provisioners=(OWNER,))


def seen_of(ledger: Ledger, snapshot: ClusterSnapshot) -> NodeObservations:
    return update_observations(ledger, NAME, snapshot, lambda before: pod_digests(snapshot, before))


@pytest.fixture
def table() -> CountedTable:
    return CountedTable()


@pytest.fixture
def ledger(table: Any) -> Ledger:
    return DynamoLedger(table, table="ledger", clock=FakeClock(LATER))


def test_what_is_seen_of_ten_thousand_nodes_is_read_back_by_the_next_look(
    ledger: Ledger, table: CountedTable
) -> None:
    first = of_nodes(10_000)
    seen = seen_of(ledger, first)
    assert len(seen) == 10_000
    written = sum(table.writes.values())
    later = replace(first, taken_at=LATER + MINUTE)
    again = seen_of(ledger, later)
    assert again.keys() == seen.keys()
    assert all(again[uid][0] == seen[uid][0] for uid in seen)
    assert sum(table.writes.values()) == written < 350


def test_pods_that_go_begin_the_wait_and_nodes_that_go_are_forgotten(ledger: Ledger) -> None:
    first = of_nodes(3)
    assert recently_changed(first, seen_of(ledger, first)) == frozenset()
    changed = replace(first, bound=first.bound[1:], taken_at=LATER + MINUTE)
    assert recently_changed(changed, seen_of(ledger, changed)) == {first.nodes[0].uid}
    later = replace(changed, nodes=first.nodes[:2], taken_at=LATER + 10 * MINUTE)
    assert recently_changed(later, seen_of(ledger, later)) == {first.nodes[0].uid}
    over = replace(later, taken_at=LATER + 11 * MINUTE)
    assert recently_changed(over, seen_of(ledger, over)) == frozenset()


def test_of_very_many_nodes_some_are_seen_for_the_first_time_again(ledger: Ledger) -> None:
    first = of_nodes(13_000)
    seen_of(ledger, first)
    changed = replace(first, bound=(), taken_at=LATER + MINUTE)
    assert 11_000 < len(recently_changed(changed, seen_of(ledger, changed))) < 13_000
