"""Room that DaemonSets and the system take on a node before any pod does."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from tests.karpenter_cases.scheduling.market import ARM, MEDIUM, SMALL, TINY
from tests.karpenter_cases.scheduling.outcome import Outcome, solve
from tests.karpenter_cases.scheduling.writing import (
    TEAM,
    Raw,
    container,
    daemonset,
    pod,
    provisioner,
    taint,
    tolerates,
)

MARKET = (TINY, SMALL, MEDIUM)


def beside(*daemons: DaemonSet, cpu: str = "1", **more: Any) -> Outcome:
    """Decide about a pod of 1 core and 1 GiB where these run on each node.

    Alone it fits the tiny type with 1.9 cores; with a core taken, it needs the small one.
    """
    more.setdefault("market", MARKET)
    words = more.pop("words", {})
    return solve(pod(cpu=cpu, memory="1Gi", **words), daemonsets=daemons, **more)


def test_daemons_take_their_room_first() -> None:
    assert beside().types == [TINY.name]
    outcome = beside(daemonset())
    assert outcome.types == [SMALL.name]
    (planned,) = outcome.new
    assert planned.daemon_requests["cpu"] == 1000


def test_a_startup_taint_keeps_no_daemon_away() -> None:
    owner = provisioner(startupTaints=[taint("network-agent", "NoSchedule")])
    assert beside(daemonset(), provisioners=(owner,)).types == [SMALL.name]


def test_a_daemon_that_leaves_no_room_anywhere_keeps_pods_pending() -> None:
    outcome = beside(daemonset(cpu="10000"))
    assert outcome.new == ()
    assert "cpu" in outcome.pending["a"]


def test_a_daemon_that_does_not_tolerate_the_nodes_taint_takes_no_room() -> None:
    owner = provisioner(taints=[taint("team")])
    words = {"tolerations": [tolerates("team")]}
    assert beside(daemonset(), provisioners=(owner,), words=words).types == [TINY.name]
    tolerant = daemonset(tolerations=[tolerates("team")])
    assert beside(tolerant, provisioners=(owner,), words=words).types == [SMALL.name]


def test_a_daemon_whose_selector_no_node_has_takes_no_room() -> None:
    assert beside(daemonset(nodeSelector={TEAM: "red"})).types == [TINY.name]
    assert beside(daemonset(nodeSelector={"never": "set"})).types == [TINY.name]


def test_a_daemon_of_other_nodes_than_the_pods_takes_no_room() -> None:
    outcome = beside(
        daemonset(nodeSelector={keys.ARCH: "arm64"}),
        market=(*MARKET, ARM),
        words={"selector": {keys.ARCH: "amd64"}},
    )
    assert outcome.types == [TINY.name]


def test_a_daemon_that_only_avoids_an_absent_label_takes_its_room() -> None:
    assert beside(daemonset(required=[[("unknown", "NotIn", "x")]])).types == [SMALL.name]


def test_a_daemon_is_held_to_its_node_affinity() -> None:
    elsewhere = daemonset(required=[[(keys.INSTANCE_TYPE, "In", MEDIUM.name)]])
    assert beside(elsewhere).types == [TINY.name]
    here = daemonset(required=[[(keys.INSTANCE_TYPE, "In", TINY.name, SMALL.name)]])
    assert beside(here).types == [SMALL.name]


LIMITS_ONLY: Raw = {"name": "main", "resources": {"limits": {"cpu": "10000"}}}


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        pytest.param({"containers": [LIMITS_ONLY]}, [], id="limits-only"),
        pytest.param(
            {
                "containers": [container("300m", "1Gi")],
                "initContainers": [container("1", "2Gi")],
            },
            [SMALL.name],
            id="max-of-both",
        ),
        pytest.param(
            {
                "containers": [container("10000", "1Gi")],
                "initContainers": [container("1", "10000Gi")],
            },
            [],
            id="combined",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "initContainers": [container("10000", "1Gi")]},
            [],
            id="init",
        ),
        pytest.param({"containers": [container()]}, [TINY.name], id="nothing"),
    ],
)
def test_a_daemon_requests_what_its_containers_do(spec: Raw, types: list[str]) -> None:
    assert beside(daemonset(**spec)).types == types
