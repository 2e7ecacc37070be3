"""Which DaemonSets nodes are chosen for."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.values import replace
from shared.planning.rules.provided_daemonsets import (
    CRITICAL,
    MOST_DAEMONSETS,
    MOST_EXPRESSIONS,
    MOST_OF_ALL,
    provided_daemonsets,
)
from tests import builders as make
from tests.builders import GIB, needs

# The median of these has four cores, of which 3.9 are for pods.
TYPES = make.CATALOG
OWNERS = (make.provisioner(),)


def daemonset(name: str = "a", namespace: str = "tenant", **asked: Any) -> DaemonSet:
    return replace(make.daemonset(name, **asked), namespace=namespace)


def left_out(*daemonsets: DaemonSet, **more: Any) -> dict[str, str]:
    """Return the reasons by name of those that are left out; the others must be provided for."""
    asked = {"provisioners": OWNERS, "instance_types": TYPES, **more}
    found = provided_daemonsets(daemonsets, **asked)
    left = {one.name: reason for one, reason in found.left_out}
    assert found.daemonsets == tuple(one for one in daemonsets if one.name not in left)
    return left


def test_one_that_takes_more_than_two_thirds_of_the_middle_machine_is_left_out() -> None:
    assert left_out(daemonset(cpu=2000)) == {}
    told = left_out(daemonset(cpu=1_000_000))["a"]
    assert told.startswith(
        "each of its pods requests cpu 1000: more than two thirds of the median of the instance "
        "types they can run on (3930m): nodes are chosen without room for it"
    )
    assert set(left_out(daemonset(memory=500 * GIB))) == {"a"}


@pytest.mark.parametrize(
    "one",
    [
        daemonset(namespace="kube-system", cpu=1_000_000),
        daemonset(cpu=1_000_000, priority=CRITICAL),
    ],
)
def test_those_of_the_system_always_count(one: DaemonSet) -> None:
    assert left_out(one) == {}


def test_those_of_listed_namespaces_always_count() -> None:
    huge = daemonset(cpu=1_000_000)
    assert left_out(huge, always={"tenant"}) == {}
    assert set(left_out(replace(huge, namespace="kube-system"), always={"tenant"})) == {"a"}


def test_of_a_namespace_the_smallest_count_as_far_as_its_part_goes() -> None:
    some = [daemonset(name, cpu=cpu) for name, cpu in (("a", 1500), ("b", 1_000_000), ("c", 900))]
    assert set(left_out(*some)) == {"b"}
    more = daemonset("d", cpu=1600)
    found = left_out(*some, more)
    assert set(found) == {"b", "d"}
    assert (
        "each of its pods requests cpu 1600m, with others of its namespace 4: more than two"
        in found["d"]
    )
    assert set(left_out(*some, replace(more, namespace="another"))) == {"b"}


def test_none_counts_of_a_namespace_with_very_many() -> None:
    large = (make.instance_type("m5.24xlarge", cpu=96_000, extra={"pods": 737}),)
    some = [daemonset(f"d{number}", cpu=1) for number in range(MOST_DAEMONSETS)]
    assert left_out(*some, instance_types=large) == {}
    found = left_out(*some, daemonset("one-more", cpu=1), instance_types=large)
    assert len(found) == MOST_DAEMONSETS + 1
    assert found["d0"].startswith("its namespace has 33 DaemonSets, more than 32: nodes are")


def test_expressions_about_nodes_are_bounded_in_a_namespace() -> None:
    def asking(name: str, count: int) -> DaemonSet:
        terms = tuple(needs(keys.ARCH, "NotIn", f"{name}{n}") for n in range(count))
        return daemonset(name, cpu=1, required_terms=terms)

    assert left_out(asking("a", MOST_EXPRESSIONS)) == {}
    found = left_out(asking("a", MOST_EXPRESSIONS), asking("b", 3), daemonset("c", cpu=1))
    assert set(found) == {"a"}
    assert "with its 256 expressions about nodes the DaemonSets of its namespace have" in found["a"]


def test_expressions_about_nodes_are_bounded_over_all_namespaces() -> None:
    def asking(namespace: str, count: int) -> DaemonSet:
        terms = tuple(needs(keys.ARCH, "NotIn", f"{namespace}{n}") for n in range(count))
        return daemonset(namespace, cpu=1, namespace=namespace, required_terms=terms)

    most = MOST_OF_ALL // MOST_EXPRESSIONS
    full = [asking(f"n{number:02}", MOST_EXPRESSIONS) for number in range(most)]
    assert left_out(*full) == {}
    found = left_out(*full, asking("small", 3))
    assert set(found) == {f"n{most - 1:02}"}
    assert "the DaemonSets of all namespaces have more than 4,096" in found[f"n{most - 1:02}"]


def test_only_machines_count_that_it_runs_on() -> None:
    tainted = make.provisioner(taints=(Taint(key="team", value="", effect=Effect.NO_SCHEDULE),))
    huge = daemonset(cpu=1_000_000)
    assert left_out(huge, provisioners=(tainted,)) == {}
    tolerant = daemonset(cpu=1_000_000, tolerations=(Toleration(operator="Exists"),))
    assert set(left_out(tolerant, provisioners=(tainted,))) == {"a"}
    large: dict[str, Any] = {"node_selector": needs(keys.INSTANCE_TYPE, "In", "m5.2xlarge")}
    assert set(left_out(daemonset(cpu=5_000))) == {"a"}
    assert left_out(daemonset(cpu=5_000, **large)) == {}


@pytest.mark.parametrize(
    "where",
    [
        needs("team", "In", "red"),
        needs(keys.ZONE, "In", make.ZONES[0]),
        needs(keys.CAPACITY_TYPE, "In", "spot", "on-demand"),
        needs(keys.REGISTERED, "In", "true"),
    ],
    ids=["custom", "zone", "capacity type", "joined"],
)
def test_labels_that_are_open_yet_do_not_hide_one(where: Any) -> None:
    open_label = (make.provisioner(also=needs("team", "Exists")),)
    one = daemonset(cpu=1_000_000, node_selector=where)
    assert set(left_out(one, provisioners=open_label)) == {"a"}
    nowhere = daemonset(cpu=1_000_000, node_selector=needs("never", "In", "set"))
    assert left_out(nowhere, provisioners=open_label) == {}


def test_what_no_machine_has_is_taken_from_nobody() -> None:
    assert left_out(daemonset(extra={"example.com/none": 5})) == {}


def test_another_version_of_a_provisioner_gets_the_same_answer() -> None:
    again = replace(OWNERS[0], resource_version="9", generation=9)
    one = daemonset(cpu=1_000_000)
    assert left_out(one, provisioners=(again,)) == left_out(one)
    paused = replace(OWNERS[0], paused=True)
    assert left_out(one, provisioners=(paused,)) == {}
