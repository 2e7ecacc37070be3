"""Which of several provisioners makes a pod's node, and which ones are left out."""

from shared.model import labels as keys
from tests import builders as make
from tests.karpenter_cases.scheduling.market import MEDIUM, SMALL, ZONES, A
from tests.karpenter_cases.scheduling.outcome import alone, solve
from tests.karpenter_cases.scheduling.writing import TEAM, pod, pods, provisioner, taint, tolerates

NAME = keys.PROVISIONER_NAME


def test_a_pod_that_names_its_provisioner_gets_it() -> None:
    owners = (provisioner("first"), provisioner("second"))
    assert alone({"selector": {NAME: "second"}}, provisioners=owners).by() == "second"
    assert "third" in alone({"selector": {NAME: "third"}}, provisioners=owners).pending["a"]


def test_a_pod_gets_the_provisioner_whose_label_it_asks_for() -> None:
    owners = (provisioner("first"), provisioner("second", labels={TEAM: "red"}))
    outcome = alone({"selector": {TEAM: "red"}}, provisioners=owners)
    assert outcome.by() == "second"
    assert outcome.values(TEAM) == {"red"}


def test_pods_get_nodes_by_every_kind_of_selector() -> None:
    served = {
        NAME: "default",
        keys.ZONE: A,
        keys.INSTANCE_TYPE: MEDIUM.name,
        keys.ARCH: "arm64",
        keys.OS: "linux",
    }
    refused = {
        NAME: "unknown",
        keys.ZONE: "unknown",
        keys.INSTANCE_TYPE: "m5.unknown",
        keys.ARCH: "unknown",
        keys.OS: "unknown",
        "example.com/unknown": "x",
    }
    outcome = solve(
        *(pod(f"yes-{n}", selector={k: v}) for n, (k, v) in enumerate(served.items())),
        *(pod(f"no-{n}", selector={k: v}) for n, (k, v) in enumerate(refused.items())),
    )
    assert sorted(outcome.homes) == [f"yes-{n}" for n in range(len(served))]
    assert sorted(outcome.pending) == [f"no-{n}" for n in range(len(refused))]
    for number, (key, value) in enumerate(served.items()):
        assert outcome.values(key, f"yes-{number}") == {value}


def test_of_several_that_fit_the_first_by_name_is_taken() -> None:
    owners = tuple(provisioner(name) for name in ("gamma", "alpha", "beta"))
    outcome = solve(*pods(3), provisioners=owners)
    assert {planned_node.provisioner for planned_node in outcome.new} == {"alpha"}


def test_the_heaviest_that_fits_is_always_taken() -> None:
    owners = (
        provisioner("plain"),
        provisioner("light", weight=20),
        provisioner("heavy", weight=100),
    )
    outcome = solve(*pods(3), provisioners=owners)
    assert {planned_node.provisioner for planned_node in outcome.new} == {"heavy"}


def test_a_provisioner_that_is_named_wins_over_heavier_ones() -> None:
    owners = (provisioner("named"), provisioner("heavy", weight=100))
    outcome = solve(pod("a", selector={NAME: "named"}), pod("b"), provisioners=owners)
    assert (outcome.by("a"), outcome.by("b")) == ("named", "heavy")


def test_a_provisioner_for_which_nothing_can_be_bought_does_not_stop_the_others() -> None:
    nowhere = provisioner("a-nowhere", weight=9)
    nothing = provisioner("b-nothing", (keys.INSTANCE_TYPE, "In", "m5.unknown"), weight=8)
    outcome = solve(
        pod(),
        provisioners=(nowhere, nothing, provisioner("works")),
        sites=(
            make.site("a-nowhere", (), reason="no subnet has the tags"),
            make.site("b-nothing", ZONES),
            make.site("works", ZONES),
        ),
    )
    assert outcome.by() == "works"


def test_a_provisioner_that_is_being_deleted_makes_nothing() -> None:
    leaving = provisioner(
        "leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, weight=9
    )
    assert alone({}, provisioners=(leaving, provisioner("stays"))).by() == "stays"
    outcome = alone({}, provisioners=(leaving,))
    assert outcome.new == ()
    assert "no usable NodePool or Provisioner" in outcome.pending["a"]


def test_node_gets_no_more_pods_than_its_kubelet_is_configured_for() -> None:
    owner = provisioner(kubeletConfiguration={"maxPods": 1})
    outcome = solve(*pods(3, cpu="100m"), provisioners=(owner,))
    assert [len(planned_node.pods) for planned_node in outcome.new] == [1, 1, 1]


def test_pods_that_tolerate_a_provisioners_taint_get_its_nodes() -> None:
    owner = provisioner(taints=[taint("team", "NoSchedule", "red")])
    outcome = solve(
        pod("any", tolerations=[tolerates()]),
        pod("key", tolerations=[tolerates("team", effect="NoSchedule")]),
        pod("same", tolerations=[{"key": "team", "operator": "Equal", "value": "red"}]),
        pod("none"),
        pod("other", tolerations=[{"key": "team", "operator": "Equal", "value": "blue"}]),
        pod("effect", tolerations=[tolerates("team", effect="NoExecute")]),
        provisioners=(owner,),
    )
    assert outcome.is_placed("any", "key", "same")
    assert sorted(outcome.pending) == ["effect", "none", "other"]
    assert "does not tolerate taint team=red:NoSchedule" in outcome.pending["none"]


def test_a_batch_that_tolerates_the_taint_shares_a_tainted_node() -> None:
    owner = provisioner(taints=[taint("batch", "NoExecute")])
    outcome = solve(*pods(3, tolerations=[tolerates("batch")]), provisioners=(owner,))
    assert len(outcome.new) == 1
    assert outcome.pending == {}


def test_a_startup_taint_needs_no_toleration() -> None:
    owner = provisioner(startupTaints=[taint("network-agent", "NoSchedule")])
    assert alone({}, provisioners=(owner,)).is_placed("a")


def test_two_provisioners_nodes_are_side_by_side() -> None:
    owners = (
        provisioner("a", (keys.ZONE, "In", A), labels={TEAM: "red"}),
        provisioner("b", (keys.INSTANCE_TYPE, "In", MEDIUM.name), labels={TEAM: "blue"}),
    )
    outcome = solve(
        pod("r", selector={TEAM: "red"}),
        pod("b", selector={TEAM: "blue"}),
        provisioners=owners,
        market=(SMALL, MEDIUM),
    )
    assert (outcome.type_of("r"), outcome.type_of("b")) == (SMALL.name, MEDIUM.name)
