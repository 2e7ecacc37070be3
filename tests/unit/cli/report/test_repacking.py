"""Pools launched anew, and consolidation to its end."""

import pytest

from functions.cli.report.consolidating import consolidated
from functions.cli.report.cost_report import REPACK_SETTINGS, Alternative, cost_report
from functions.cli.report.owners import (
    owners_of,
    pools_of,
    site_of,
    with_arm64,
    with_other_types,
    with_spot,
    within_architectures,
)
from functions.cli.report.repacking import Outcome, Repacking
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.provisioning.savings.inventory import by_pool
from shared.provisioning.savings.pools import Pool, PoolKind
from tests.builders import (
    CATALOG,
    GIB,
    ZONES,
    budget,
    daemonset,
    instance_type,
    needs,
    node_of,
    pod,
    provisioner,
    snapshot,
)

DAEMON = ControllerRef(kind="DaemonSet", name="logs", uid="d")
GROUP = "eks.amazonaws.com/nodegroup"
CATEGORIES = {"c6g.large": "c", "m5.large": "m", "m5.xlarge": "m", "m5.2xlarge": "m"}
TYPES = tuple(
    replace(
        found,
        labels={
            **found.labels,
            keys.INSTANCE_CATEGORY: CATEGORIES[found.name],
            keys.INSTANCE_GENERATION: "5",
        },
    )
    for found in CATALOG
)


def of_group(name: str, group: str, kind: str = "m5.2xlarge", **overrides: object) -> Node:
    made = node_of(name, kind, finalizers=(), **overrides)
    ours = (keys.PROVISIONER_NAME, keys.INITIALIZED)
    labels = {k: v for k, v in made.labels.items() if k not in ours}
    return replace(made, labels={**labels, GROUP: group, "team": "blue"})


def on(node: str, name: str, **overrides: object) -> object:
    return pod(name, node_name=node, **overrides)


def scene(nodes: tuple[Node, ...], *pods: object, **overrides: object) -> ClusterSnapshot:
    fields = {"provisioners": (), "instance_types": TYPES, **overrides}
    return snapshot(nodes=nodes, bound=pods, **fields)


def requirement(owner: Provisioner, key: str) -> Requirement | None:
    return owner.requirements.get(key)


def test_a_node_group_may_launch_what_its_nodes_show() -> None:
    taint = Taint(key="team", value="blue", effect=Effect.NO_SCHEDULE)
    cordon = Taint(key=keys.UNSCHEDULABLE_TAINT, value="", effect=Effect.NO_SCHEDULE)
    starting = Taint(key=keys.NODE_NOT_READY_TAINT, value="", effect=Effect.NO_SCHEDULE)
    only_here = Taint(key="odd", value="", effect=Effect.NO_SCHEDULE)
    first = of_group("a", "g", taints=(taint, cordon, starting, only_here))
    second = of_group("b", "g", "m5.large", taints=(taint,))
    pools = pools_of((first, second))
    (owner,) = owners_of(scene((first, second)), pools).values()
    assert requirement(owner, keys.INSTANCE_TYPE) == Requirement.of(
        keys.INSTANCE_TYPE, "m5.2xlarge", "m5.large"
    )
    assert owner.taints == (taint,)
    assert owner.labels == {GROUP: "g", "team": "blue"}
    assert owner.consolidation
    assert (owner.name, owner.kind.value) == ("g", "Provisioner")


def test_a_declared_pool_may_launch_what_it_declares() -> None:
    found = node_of("a")
    declared = provisioner()
    owners = owners_of(scene((found,), provisioners=(declared,)), pools_of((found,)))
    assert owners == {Pool(PoolKind.PROVISIONER, "default"): declared}


def test_nodes_without_a_pool_get_a_name_for_what_they_may_launch() -> None:
    bare = replace(node_of("a"), labels={keys.INSTANCE_TYPE: "m5.large"})
    (owner,) = owners_of(scene((bare,)), pools_of((bare,))).values()
    assert owner.name == "none"


def test_a_site_has_the_zones_of_the_cluster_that_have_prices() -> None:
    found = of_group("a", "g")
    elsewhere = replace(found, name="b", labels={**found.labels, keys.ZONE: "us-east-1-atl-1a"})
    pools = pools_of((found, elsewhere))
    ((pool, owner),) = owners_of(scene((found, elsewhere)), pools).items()
    assert site_of(pool, owner, pools[pool], scene((found, elsewhere))).zones == (ZONES[0],)


def test_types_that_images_never_boot_are_not_launched_but_those_of_running_nodes_are() -> None:
    old, older = instance_type("a1.large"), instance_type("a1.xlarge")
    found = node_of("n1", old)
    seen = scene((found,), instance_types=(old, older, *TYPES))
    ((pool, owner),) = owners_of(seen, pools_of((found,))).items()
    assert site_of(pool, owner, (found,), seen).without_image == {"a1.xlarge"}


def test_a_general_pool_gets_all_general_types_of_its_architecture() -> None:
    owner = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "m5.large"))
    wider = with_other_types(owner, scene(()))
    assert requirement(wider, keys.INSTANCE_TYPE) is None
    assert requirement(wider, keys.INSTANCE_CATEGORY) == Requirement.of(
        keys.INSTANCE_CATEGORY, "c", "m", "r"
    )
    assert requirement(wider, keys.ARCH) == Requirement.of(keys.ARCH, "amd64")


def test_pools_for_devices_or_odd_types_or_all_types_stay_as_they_are() -> None:
    gpu = provisioner(also=needs(keys.INSTANCE_GPU_COUNT, "Gt", "0"))
    odd = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "p9.large"))
    every = provisioner()
    for owner in (gpu, odd, every):
        assert with_other_types(owner, scene(())) is owner


def test_a_pool_that_names_no_architecture_keeps_to_that_of_its_nodes() -> None:
    silent = provisioner(also=needs(keys.CAPACITY_TYPE, "In", "on-demand"))
    silent = replace(
        silent, requirements=Requirements.of(r for r in silent.requirements if r.key != keys.ARCH)
    )
    arm, amd = node_of("a", labels={keys.ARCH: "arm64"}), node_of("b", "m5.large")
    unknown = replace(amd, labels={})
    for nodes, kept in (((arm,), {"arm64"}), ((arm, amd, unknown), {"amd64", "arm64"})):
        found = requirement(within_architectures(silent, nodes), keys.ARCH)
        assert found == Requirement.of(keys.ARCH, *kept)
    assert within_architectures(silent, (unknown,)) is silent
    named = provisioner()
    assert within_architectures(named, (arm,)) is named


def test_arm64_is_added_where_a_type_of_the_pool_has_it() -> None:
    amd64 = provisioner()
    both = requirement(with_arm64(amd64, scene(())), keys.ARCH)
    assert both == Requirement.of(keys.ARCH, "amd64", "arm64")
    one_type = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "m5.large"))
    already = with_arm64(amd64, scene(()))
    for owner in (one_type, already):
        assert with_arm64(owner, scene(())) is owner


def test_spot_is_allowed_beside_on_demand() -> None:
    both = requirement(with_spot(provisioner()), keys.CAPACITY_TYPE)
    assert both == Requirement.of(keys.CAPACITY_TYPE, "on-demand", "spot")


def test_half_empty_groups_are_repacked_on_their_own_types() -> None:
    nodes = (of_group("a", "g"), of_group("b", "g"), of_group("c", "h"))
    found = cost_report(
        scene(
            nodes,
            on("a", "p", cpu=1000, memory=GIB),
            on("b", "q", cpu=1000, memory=GIB),
            on("c", "r", cpu=1000, memory=GIB),
        ),
        (),
    )
    now = by_pool(found.running.nodes)
    then = by_pool(found.alternatives[Alternative.REPACKED].nodes)
    assert {pool.name: len(listed) for pool, listed in now.items()} == {"g": 2, "h": 1}
    assert {pool.name: len(listed) for pool, listed in then.items()} == {"g": 1, "h": 1}
    repacked = found.alternatives[Alternative.REPACKED]
    assert repacked.cost_micros_per_hour == repacked.lower_bound_micros_per_hour == 2 * 384_000
    assert found.alternatives[Alternative.OTHER_TYPES].cost_micros_per_hour == 192_000 + 96_000
    assert found.alternatives[Alternative.SPOT].cost_micros_per_hour < 192_000
    assert found.cheapest == Alternative.OTHER_TYPES
    assert found.declared == frozenset()


def test_a_pod_that_fits_no_new_node_keeps_its_node_and_others_use_its_room() -> None:
    named = needs(keys.HOSTNAME, "In", "a")
    nodes = (of_group("a", "g"), of_group("b", "g"))
    found = cost_report(
        scene(
            nodes,
            on("a", "p", cpu=1000, memory=GIB, node_selector=named),
            on("b", "q", cpu=1000, memory=GIB),
            on("a", "d", cpu=100, memory=GIB, owner=DAEMON),
        ),
        (),
    )
    repacked = found.alternatives[Alternative.REPACKED]
    (kept,) = repacked.nodes
    assert kept.name == "a"
    assert sorted(entry.name for entry in kept.pods) == ["p", "q"]
    assert kept.daemons["cpu"] == 100
    ((name, why),) = repacked.held
    assert name == "default/p"
    assert "kubernetes.io/hostname" in why


def test_consolidation_keeps_pods_in_their_pool_and_ends_when_nothing_saves() -> None:
    nodes = (
        of_group("a", "g"), of_group("b", "g"), of_group("c", "g"), of_group("d", "h"),
    )  # fmt: skip
    found = cost_report(
        scene(
            nodes,
            on("a", "p", cpu=1000, memory=GIB),
            on("b", "q", cpu=1000, memory=GIB),
            on("d", "r", cpu=500, memory=GIB),
            daemonsets=(daemonset(cpu=100),),
        ),
        (),
    )
    left = found.alternatives[Alternative.CONSOLIDATED]
    assert {pool.name: len(listed) for pool, listed in by_pool(left.nodes).items()} == {
        "g": 1, "h": 1,
    }  # fmt: skip
    assert left.lower_bound_micros_per_hour is None


def test_consolidation_replaces_a_node_by_a_cheaper_one_of_its_pool() -> None:
    small, large = of_group("a", "g", "m5.large"), of_group("b", "g")
    found = cost_report(
        scene(
            (small, large),
            on("a", "p", cpu=1500, memory=GIB),
            on("b", "q", cpu=1000, memory=GIB),
            daemonsets=(daemonset(cpu=100),),
        ),
        (),
    )
    left = found.alternatives[Alternative.CONSOLIDATED]
    assert sorted(entry.instance_type for entry in left.nodes) == ["m5.large", "m5.large"]
    (new,) = (entry for entry in left.nodes if entry.name not in ("a", "b"))
    assert new.pool == Pool(PoolKind.MANAGED, "g")
    assert new.daemons["cpu"] == 100


def test_a_node_that_consolidation_launches_has_the_daemons_of_its_own_zone() -> None:
    in_zone = [
        daemonset(zone, cpu=cpu, node_selector=needs(keys.ZONE, "In", zone))
        for zone, cpu in zip(ZONES, (100, 200), strict=False)
    ]
    nodes = (
        of_group("a", "g", labels={keys.ZONE: ZONES[0]}),
        of_group("b", "g", "m5.large", labels={keys.ZONE: ZONES[1]}),
    )
    stand = (on("a", "p", cpu=1000, memory=GIB), on("b", "q", cpu=1500, memory=GIB))
    found = cost_report(scene(nodes, *stand, daemonsets=tuple(in_zone)), ())
    (new,) = (
        entry for entry in found.alternatives[Alternative.CONSOLIDATED].nodes if entry.name != "b"
    )
    assert new.daemons["cpu"] == {ZONES[0]: 100, ZONES[1]: 200}[new.zone]


def test_nodes_of_a_node_pool_are_consolidated_as_such() -> None:
    nodes = tuple(
        replace(node_of(name, "m5.large"), labels={
            **{k: v for k, v in node_of(name).labels.items() if k != keys.PROVISIONER_NAME},
            keys.NODE_POOL: "new",
        })
        for name in "ab"
    )  # fmt: skip
    found = cost_report(
        scene(nodes, on("a", "p", cpu=500, memory=GIB), on("b", "q", cpu=500, memory=GIB)), ()
    )
    assert len(found.alternatives[Alternative.CONSOLIDATED].nodes) == 1


def test_pools_of_one_name_are_consolidated_apart() -> None:
    ours = node_of("b", labels={keys.PROVISIONER_NAME: "g"})
    nodes = (of_group("a", "g", "m5.large"), ours)
    found = cost_report(scene(nodes, on("a", "p", cpu=500), on("b", "q", cpu=500)), ())
    assert found.alternatives[Alternative.CONSOLIDATED].nodes == found.running.nodes


def test_consolidation_ends_with_the_tries_that_it_may_take() -> None:
    left = consolidated_group(
        scene(
            (of_group("a", "g"), of_group("b", "g"), of_group("c", "g", "m5.large")),
            on("a", "p", cpu=500), on("b", "q", cpu=500), on("c", "r", cpu=1800),
        ),
        tries=1,
    )  # fmt: skip
    # One plan is tried, for the most wasteful node; two more would leave two m5.large.
    assert sorted(entry.instance_type for entry in left.nodes) == ["m5.2xlarge", "m5.large"]


def consolidated_group(seen: ClusterSnapshot, tries: int = 6, **more: bool) -> Outcome:
    """Return a snapshot's only pool, consolidated."""
    pools = pools_of(seen.nodes)
    ((pool, owner),) = owners_of(seen, pools).items()
    plan = Repacking(seen, pools).of_pool(pool, owner, REPACK_SETTINGS)
    return consolidated(seen, (), pools[pool], owner, plan, REPACK_SETTINGS, tries=tries, **more)


def test_karpenter_does_not_replace_a_node_by_two() -> None:
    seen = scene(
        (of_group("a", "g"), of_group("b", "g", "m5.large"), of_group("c", "g", "m5.xlarge")),
        *(on("a", f"p{number}", cpu=1800, memory=GIB) for number in range(3)),
        on("b", "q", cpu=1800),
        on("c", "r", cpu=3500),
    )
    kinds = {
        alone: sorted(
            entry.instance_type for entry in consolidated_group(seen, as_karpenter=alone).nodes
        )
        for alone in (False, True)
    }
    assert kinds[False] == ["m5.large", "m5.large", "m5.xlarge", "m5.xlarge"]
    assert kinds[True] == ["m5.2xlarge", "m5.large", "m5.xlarge"]


@pytest.mark.parametrize("tries", [1, 6])
def test_of_many_pods_the_first_change_is_their_repacking(tries: int) -> None:
    nodes = tuple(of_group(f"n{number}", "g") for number in range(40))
    pods = [on(f"n{number % 40}", f"p{number}", cpu=100, memory=GIB // 10) for number in range(520)]
    left = consolidated_group(scene(nodes, *pods), tries)
    assert all(entry.name.startswith("new-1-") for entry in left.nodes)
    assert sum(len(entry.pods) for entry in left.nodes) == 520


def test_of_many_pods_the_repacking_is_no_change_where_one_may_not_move() -> None:
    nodes = tuple(of_group(f"n{number}", "g") for number in range(40))
    pods = [on(f"n{number % 40}", f"p{number}", cpu=100, memory=GIB // 10) for number in range(520)]
    forbidden = replace(nodes[0], annotations={keys.DO_NOT_DISRUPT: "true"})
    left = consolidated_group(scene((forbidden, *nodes[1:]), *pods))
    assert "n0" in {entry.name for entry in left.nodes}


def test_a_budget_that_allows_nothing_holds_a_node() -> None:
    nodes = (of_group("a", "g"), of_group("b", "g"))
    found = cost_report(
        scene(nodes, on("a", "p", cpu=500), on("b", "q", cpu=500)), (budget(allowed=0),)
    )
    assert found.alternatives[Alternative.CONSOLIDATED].nodes == found.running.nodes
    assert len(found.alternatives[Alternative.REPACKED].nodes) == 1


def test_a_node_that_is_full_saves_nothing() -> None:
    tolerates = Toleration(key="x", operator="Exists")
    full = of_group("a", "g", "m5.large")
    found = cost_report(
        scene((full,), on("a", "p", cpu=1900, memory=GIB, tolerations=(tolerates,))), ()
    )
    assert found.cheapest is None


def test_fargate_and_unknown_types_are_apart_and_nothing_else_is_left() -> None:
    fargate = replace(of_group("f", "g"), labels={"eks.amazonaws.com/compute-type": "fargate"})
    unknown = replace(of_group("u", "g"), labels={keys.INSTANCE_TYPE: "x9.huge", GROUP: "g"})
    waiting = pod("w")
    found = cost_report(
        replace(scene((fargate, unknown), on("f", "p")), pending=(waiting,)), (),
        [("as it is", REPACK_SETTINGS)],
    )  # fmt: skip
    assert sorted(entry.name for entry in found.excluded) == ["f", "u"]
    assert found.running.nodes == ()
    assert found.alternatives == {}
    assert found.waiting == 1
    assert found.cheapest is None
    assert found.variants[0][1].cost_micros_per_hour == 0
