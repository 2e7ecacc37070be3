"""A change of nodes is made only if it saves more than it costs while its pods are there."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.candidates import Candidate, find_candidates
from shared.disruption.payback import pays_back
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef, Pod
from tests.builders import node_of, pods
from tests.unit.disruption.clusters import LATER, cluster, consolidated

JOB = ControllerRef(kind="Job", name="batch", uid="uid-batch")
# Of a node of $0.384 an hour that is removed: its pods have room elsewhere.
REMOVED = 0


def aged(minutes: float, count: int = 1, **more: Any) -> tuple[Pod, ...]:
    created = {"created_at": LATER - timedelta(minutes=minutes), **more}
    return pods(count, prefix=f"{minutes}-{len(more)}-", node_name="a", cpu=500, **created)


def candidates(*bound: Pod, **more: Any) -> Sequence[Candidate]:
    seen = cluster(node_of("a", "m5.2xlarge"), bound=bound, **more)
    return find_candidates(seen, (), LATER)[0]


def pays(found: Sequence[Candidate], cents: float) -> bool:
    settings = DisruptionSettings(eviction_cost_micros=int(cents * 10_000))
    return pays_back(found, REMOVED, settings, LATER)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        # The drain of a minute is paid.
        pytest.param(aged(1.1), True, id="in-time"),
        pytest.param(aged(0.9), False, id="too-early"),
        pytest.param((*aged(0.9), *aged(30)), True, id="the-oldest-counts"),
        pytest.param((*aged(0.9), *aged(30, deletion_at=LATER)), False, id="leaving-anyway"),
        pytest.param(aged(30, created_at=None), False, id="of-unknown-age"),
    ],
)
def test_a_change_pays_back_before_its_pods_are_expected_to_leave(
    bound: tuple[Pod, ...],
    expected: bool,  # noqa: FBT001
) -> None:
    assert pays(candidates(*bound), cents=0.01) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # In 15 minutes, 9 cents are saved.
        pytest.param(candidates(*aged(15, count=8)), True, id="few"),
        pytest.param(candidates(*aged(15, count=9)), False, id="many"),
        pytest.param(
            candidates(*aged(15, count=5, annotations={keys.POD_DELETION_COST: str(2**27)})),
            False,
            id="expensive",
        ),
    ],
)
def test_each_eviction_has_its_price(found: Sequence[Candidate], expected: bool) -> None:  # noqa: FBT001
    assert pays(found, cents=1) == expected


def test_a_node_of_jobs_is_left_to_end_and_lost_work_of_a_few_does_not_keep_old_pods() -> None:
    job = aged(30, owner=JOB)
    assert not pays(candidates(*job), cents=0.1)
    assert not pays(candidates(*job, *aged(29)), cents=0.1)
    assert pays(candidates(*job, *aged(60)), cents=0.1)


def test_where_evictions_have_no_price_saving_is_enough() -> None:
    assert pays(candidates(*aged(0, owner=JOB)), cents=0)
    assert not pays(candidates(*aged(0, owner=JOB)), cents=0.1)


def test_a_node_waits_until_its_pods_are_old_enough_that_stay() -> None:
    for young in (aged(9), (*aged(20), *aged(9))):
        seen = cluster(node_of("a", "m5.2xlarge"), bound=young)
        assert consolidated(seen).skipped == (("a", "its pods are young"),)
    going = cluster(node_of("a", "m5.2xlarge"), bound=(*aged(20), *aged(9, deletion_at=LATER)))
    assert consolidated(going).best is not None


def test_consolidation_leaves_alone_what_does_not_pay_back() -> None:
    for minutes, cents, changed in ((11, 0, True), (11, 10, False), (60, 10, True)):
        seen = cluster(node_of("a", "m5.2xlarge"), bound=aged(minutes))
        outlook = consolidated(seen, eviction_cost_micros=cents * 10_000)
        assert (outlook.best is not None) == changed
