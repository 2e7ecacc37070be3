"""What the next pod of a DaemonSet asks for, by those that stand."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.values import replace
from shared.snapshot.standing_daemons import with_standing
from tests import builders as make

MADE = make.daemonset("logs", cpu=100)


def standing(cpu: int, minute: int = 0, generation: str = "2", **fields: Any) -> Pod:
    owner = ControllerRef(kind="DaemonSet", name="logs", uid="u")
    pod = make.pod(f"logs-{minute}", cpu=cpu, node_name="n1")
    return replace(
        pod,
        namespace=MADE.namespace,
        owner=owner,
        labels={"pod-template-generation": generation},
        created_at=make.NOW + timedelta(minutes=minute),
        **fields,
    )


@pytest.mark.parametrize(
    ("bound", "cpu"),
    [
        ([], 100),
        ([standing(500)], 500),
        ([standing(50)], 100),
        ([standing(900, 1), standing(300, 2), standing(700, 0)], 300),
        ([standing(900, generation="1")], 100),
        ([standing(900, phase="Failed")], 100),
        (
            [replace(standing(900), owner=ControllerRef(kind="ReplicaSet", name="logs", uid="u"))],
            100,
        ),
        ([replace(standing(900), owner=None)], 100),
        ([replace(standing(900), created_at=None), standing(300)], 300),
    ],
    ids=[
        *("none", "more", "less", "the newest", "of an older template", "ended"),
        *("of another kind", "of nobody", "one without a time"),
    ],
)
def test_a_daemon_is_counted_with_what_its_newest_pod_asks_for(bound: list[Pod], cpu: int) -> None:
    (found,) = with_standing([replace(MADE, generation="2")], bound)
    assert found.scheduling.requests["cpu"] == cpu


def test_without_a_generation_all_its_pods_are_of_the_present_one() -> None:
    (found,) = with_standing([MADE], [replace(standing(500), labels={})])
    assert found.scheduling.requests["cpu"] == 500
