"""What is said of nodes whose kubelet stopped."""

from typing import Any

import pytest

from shared.disruption.unhealthy_outcome import unhealthy_outcome
from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from tests.builders import NOW, node_of, pod, provisioner
from tests.unit.worlds import MINUTE

LEAVE = "it is removed as empty once these pods leave"
DELETE = "delete the Node, and its pods get another"
EMPTIES = provisioner(ttl_after_empty=MINUTE)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "it is removed as empty"),
        (1, f"{LEAVE}: default/p0; sooner: {DELETE}"),
        (3, f"{LEAVE}: default/p0 and 2 more; sooner: {DELETE}"),
    ],
)
def test_pods_that_run_on_it_keep_it(count: int, text: str) -> None:
    pods = [pod(f"p{number}", node_name="n1") for number in range(count)]
    pods.append(pod("left", node_name="n1", deletion_at=NOW))
    assert unhealthy_outcome(node_of("n1", ready=None), EMPTIES, pods) == text


@pytest.mark.parametrize(
    ("owner", "more", "reason"),
    [
        (None, {}, "its owner default is gone"),
        (provisioner(paused=True), {}, "Provisioner default is paused"),
        (provisioner(shadow=True), {}, "Provisioner default is in shadow mode"),
        (EMPTIES, {keys.DO_NOT_DISRUPT: "true"}, f"its annotation {keys.DO_NOT_DISRUPT}"),
        (provisioner(), {}, "Provisioner default has no nodes removed for being empty"),
    ],
)
def test_what_keeps_it_for_good_is_said(
    owner: Provisioner | None, more: dict[str, Any], reason: str
) -> None:
    one = node_of("n1", ready=None, annotations=more)
    assert unhealthy_outcome(one, owner, ()) == f"it stays ({reason}): {DELETE}"
    assert unhealthy_outcome(one, owner, (), "a brake") == f"it stays (a brake): {DELETE}"


def test_consolidation_removes_it_as_empty_too() -> None:
    owner = provisioner(consolidation=True)
    assert unhealthy_outcome(node_of("n1", ready=None), owner, ()) == "it is removed as empty"
