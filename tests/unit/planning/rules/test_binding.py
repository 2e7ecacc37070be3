"""Which pods may be bound before their node is ready."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Effect, Toleration
from shared.planning.rules.binding import binds_early, needs_scheduler
from tests.builders import pod

PATIENT = Toleration(key=keys.NODE_NOT_READY_TAINT, operator="Exists", seconds=300)
HASTY = Toleration(key=keys.NODE_NOT_READY_TAINT, operator="Exists", seconds=299)


def test_a_plain_pod_of_a_replica_set_is_bound_early() -> None:
    assert binds_early(pod()) == ""
    for_ever = Toleration(operator="Exists", effect=Effect.NO_EXECUTE)
    assert binds_early(pod(tolerations=(for_ever,))) == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scheduler_name": "mine"}, "it belongs to scheduler mine"),
        ({"gated": True}, "it is gated"),
        ({"claims": ("data",)}, "its volumes are bound by kube-scheduler"),
        ({"resource_claims": True}, "its resource claims are allocated by kube-scheduler"),
    ],
)
def test_what_only_kube_scheduler_can_complete_is_left_to_it(
    changes: dict[str, Any], reason: str
) -> None:
    assert needs_scheduler(pod(**changes)) == reason
    assert binds_early(pod(**changes)) == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"owner": None}, "no controller would replace it"),
        (
            {"owner": ControllerRef(kind="Job", name="j", uid="j")},
            "a Job does not replace it freely",
        ),
        ({"extra": {"nvidia.com/gpu": 1}}, "its node must show nvidia.com/gpu first"),
        ({"tolerations": ()}, "it does not tolerate node.kubernetes.io/not-ready for 300 s"),
        ({"tolerations": (HASTY,)}, "it does not tolerate node.kubernetes.io/not-ready for 300 s"),
        ({"tolerations": (PATIENT,)}, "it does not tolerate node.kubernetes.io/unreachable"),
    ],
)
def test_a_pod_that_would_be_missed_or_evicted_waits_until_the_node_is_ready(
    changes: dict[str, Any], reason: str
) -> None:
    assert needs_scheduler(pod(**changes)) == ""
    assert binds_early(pod(**changes)).startswith(reason)
