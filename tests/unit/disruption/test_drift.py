"""Whether a node is still what its Provisioner asks for."""

from datetime import timedelta

from shared.disruption.drift import drift_of, long_unsold, shape_hash, unsold_since
from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirements
from tests.builders import NOW, needs, node, node_of, provisioner, snapshot

TAINT = Taint(key="team", value="a", effect=Effect.NO_SCHEDULE)


def test_neither_its_name_nor_a_pause_changes_the_hash() -> None:
    paused = Provisioner(name="b", paused=True)
    assert shape_hash(paused) == shape_hash(Provisioner(name="a"))


def test_the_hash_knows_no_order_of_maps_and_stays_the_same_from_release_to_release() -> None:
    one = Provisioner(name="a", labels={"a": "1", "b": "2"}, taints=(TAINT,))
    other = Provisioner(name="a", labels={"b": "2", "a": "1"}, taints=(TAINT,))
    assert shape_hash(one) == shape_hash(other) == "ff0f0e797620882f"


def test_a_node_whose_labels_no_longer_meet_the_requirements_has_drifted() -> None:
    owner = provisioner(requirements=needs(keys.INSTANCE_TYPE, "In", "m5.xlarge"))
    assert drift_of(node(), owner) == (
        "requirement node.kubernetes.io/instance-type in [m5.xlarge] no longer allows m5.large"
    )
    owner = provisioner(requirements=needs("team", "Exists"))
    assert drift_of(node(), owner).endswith("no longer allows its absence")
    assert drift_of(node(), provisioner(requirements=Requirements())) == ""


def test_a_node_without_a_tenancy_has_the_default_one() -> None:
    owner = provisioner(also=needs(keys.INSTANCE_TENANCY, "In", "default"))
    assert drift_of(node(), owner) == ""
    other = node(labels={**node().labels, keys.INSTANCE_TENANCY: "dedicated"})
    assert "no longer allows dedicated" in drift_of(other, owner)


def test_without_a_catalogue_nothing_new_is_known_about_what_is_sold() -> None:
    before = {"uid-a": NOW.isoformat()}
    assert unsold_since(snapshot(nodes=(node_of("b"),), instance_types=()), before) == before


def test_of_a_capacity_type_that_no_catalogue_has_the_instance_type_counts_alone() -> None:
    reserved = node_of("a", labels={keys.CAPACITY_TYPE: "reserved"})
    assert unsold_since(snapshot(nodes=(reserved,)), {}) == {}
    gone = node_of("b", labels={keys.CAPACITY_TYPE: "reserved", keys.INSTANCE_TYPE: "m1.small"})
    seen = snapshot(nodes=(gone,))
    assert unsold_since(seen, {}) == {gone.uid: seen.taken_at.isoformat()}


def test_a_node_has_drifted_once_the_catalogue_has_lacked_it_for_13_hours() -> None:
    hours = timedelta(hours=13)
    ages = {"long ago": 2 * hours, "just now due": hours, "almost": hours - timedelta(seconds=1)}
    seen = {uid: (NOW - age).isoformat() for uid, age in ages.items()}
    assert long_unsold(seen, NOW) == {"long ago", "just now due"}
