"""What the pods of nodes that are being deleted take from the room that changes count on."""

from typing import Any

from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.simulate import fits_without, with_drained
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.planning.setting_aside import ref_of
from tests.builders import NOW, node_of, pod, slot
from tests.unit.disruption.clusters import AGED, PACKING, changed, cluster, looked, on


def going(name: str, **more: Any) -> Node:
    return node_of(name, deletion_at=NOW, unschedulable=True, **more)


def bought_for(*names: str) -> dict[str, Any]:
    return {"annotations": {keys.REPLACES: ",".join(names)}}


def places(seen: ClusterSnapshot) -> dict[str, str]:
    """Return where pods count, by name."""
    return {found.name: found.node_name for found in with_drained(seen).bound}


def half(name: str, number: int = 0, **more: Any) -> Pod:
    """Return a pod of which a node of these tests has room for two."""
    return on(name, number, cpu=900, **more)


def test_room_that_pods_of_a_draining_node_need_is_not_given_to_others() -> None:
    bound = (half("a"), half("b"), half("c"))
    rest = (node_of("b"), node_of("c"))
    found = looked(cluster(going("a"), *rest, bound=bound))
    assert (found.change, found.reason) == (None, "nothing saves enough")
    assert not fits_without(cluster(going("a"), *rest, bound=bound), ["c"], PACKING)
    # While nothing is drained, one of the three may go.
    assert changed(cluster(node_of("a"), *rest, bound=bound)).method == DisruptionMethod.DELETE
    assert fits_without(cluster(*rest, bound=bound[1:]), ["c"], PACKING)


def test_a_drain_whose_pods_find_no_room_holds_up_no_change() -> None:
    """And nothing is bought for it: a budget may hold it for ever."""
    bound = (on("a", cpu=1900), half("b"), half("c"))
    seen = cluster(going("a"), node_of("b"), node_of("c"), bound=bound)
    found = changed(seen)
    assert (found.method, found.plan.nodes) == (DisruptionMethod.DELETE, ())
    assert [ref.name for ref in found.plan.order] in (["b-0"], ["c-0"])
    assert fits_without(seen, ["c"], PACKING)


def test_a_change_of_the_node_that_has_the_room_finds_it_elsewhere() -> None:
    seen = cluster(going("a"), node_of("b"), bound=(half("a"), half("b")), provisioners=(AGED,))
    found = changed(seen)
    assert (found.remove, found.method) == (("b",), DisruptionMethod.REPLACE)
    assert sorted(ref.name for planned in found.plan.nodes for ref in planned.pods) == [
        "a-0",
        "b-0",
    ]


def test_pods_of_a_node_whose_replacement_stands_take_no_other_room() -> None:
    bound = (half("a"), half("b"), half("c"))
    seen = cluster(going("a"), node_of("b"), node_of("c"), bound=bound)
    fresh = node_of("new", **bought_for("gone", "a"))
    seen = replace(seen, nodes=(*seen.nodes, fresh))
    assert places(seen)["a-0"] == "new"
    assert changed(seen).method == DisruptionMethod.DELETE
    # What does not fit there needs room on others.
    more = replace(seen, bound=(*bound, half("a", 1), half("a", 2)))
    assert sorted(places(more)[f"a-{number}"] for number in range(3))[1:] == ["new", "new"]


def test_pods_of_a_node_whose_replacement_is_in_flight_take_no_other_room() -> None:
    bound = (half("a"), half("a", 1), half("b"))
    coming = slot(replaces="gone,a", pods=(ref_of(bound[0]),))
    seen = cluster(going("a"), node_of("b"), bound=bound, slots=(coming,))
    assert places(seen) == {"a-0": "a", "a-1": "b", "b-0": "b"}
    # Else they would be promised to the replacement of that node, too.
    joined = node_of(
        "new", **bought_for("a"), provider_id=f"aws:///us-east-1a/{coming.instance_id}"
    )
    assert places(replace(seen, nodes=(*seen.nodes, joined)))["a-0"] == "new"


def test_a_node_that_replaces_another_has_no_room_for_them() -> None:
    fresh = node_of("new", **bought_for("b"))
    seen = cluster(going("a"), node_of("b"), fresh, bound=(half("a"), on("b", cpu=1500)))
    assert places(seen)["a-0"] == "a"
    assert fits_without(seen, ["b"], PACKING)


def test_a_pod_whose_volumes_are_not_known_is_left_where_it_is() -> None:
    def of(claims: tuple[str, ...]) -> str:
        return places(cluster(going("a"), node_of("b"), bound=(half("a", claims=claims),)))["a-0"]

    assert [of(()), of(RESOLVED), of(("data",))] == ["b", "b", "a"]


def test_the_successor_of_a_pod_that_is_leaving_counts_where_there_is_one_to_come() -> None:
    owner = pod("x").owner
    assert owner is not None
    ordered = replace(owner, kind="StatefulSet")
    leaving = (half("a", deletion_at=NOW), half("a", 1, deletion_at=NOW, owner=ordered))
    seen = cluster(going("a"), node_of("b"), bound=leaving)
    assert places(seen) == {"a-0": "a", "a-1": "b"}
    assert with_drained(cluster(node_of("b"))) == cluster(node_of("b"))
