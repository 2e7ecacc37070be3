"""Whether a Provisioner can launch anything, and what in it is probably a mistake."""

import pytest

from shared.model import labels as keys
from shared.model.snapshot import ProvisionerSite
from shared.model.values import replace
from shared.planning.provisioner_problems import (
    excluding_requirement,
    launch_problem,
    requirement_warnings,
)
from tests import builders as make
from tests.builders import CATALOG, needs, provisioner

_DOES_NOT_CHOOSE = (
    "no instance type has this label, so no node meets it; nodes get it as a label of your own"
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (
            "node.k8s.aws/instance-type",
            f"{_DOES_NOT_CHOOSE}; did you mean node.kubernetes.io/instance-type?",
        ),
        (
            "node.kubernetes.io/instance-typ",
            f"{_DOES_NOT_CHOOSE}; did you mean node.kubernetes.io/instance-type?",
        ),
        ("instance-type", f"{_DOES_NOT_CHOOSE}; did you mean node.kubernetes.io/instance-type?"),
        ("node.kubernetes.io/something-else", _DOES_NOT_CHOOSE),
    ],
)
def test_key_that_no_instance_type_answers_is_a_warning(key: str, expected: str) -> None:
    owner = provisioner(also=needs(key, "In", "m5.large"))
    assert requirement_warnings(owner, CATALOG) == (f"requirement {key}: {expected}",)


@pytest.mark.parametrize(
    "key",
    ["team", "example.com/team", "node-restriction.kubernetes.io/team", keys.INSTANCE_TENANCY],
)
def test_label_of_the_users_own_domain_or_of_each_node_is_no_mistake(key: str) -> None:
    assert requirement_warnings(provisioner(also=needs(key, "In", "red")), CATALOG) == ()


def test_label_that_the_provisioner_declares_is_no_mistake() -> None:
    key = "node.kubernetes.io/rack"
    owner = provisioner(also=needs(key, "In", "a"), labels={key: "a"})
    assert requirement_warnings(owner, CATALOG) == ()


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        (keys.INSTANCE_TYPE, ("m5.large", "m5.lrage"), "m5.lrage; did you mean m5.large?"),
        (keys.ZONE, ("us-west-2a",), "us-west-2a"),
        (keys.INSTANCE_FAMILY, tuple("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_value_that_no_instance_type_has_is_a_warning(
    key: str, values: tuple[str, ...], expected: str
) -> None:
    owner = provisioner(also=needs(key, "In", *values))
    assert requirement_warnings(owner, CATALOG) == (
        f"requirement {key}: no instance type here has {expected}",
    )


def test_values_that_are_only_excluded_need_not_exist() -> None:
    owner = provisioner(also=needs(keys.INSTANCE_TYPE, "NotIn", "m5.lrage"))
    assert requirement_warnings(owner, CATALOG) == ()


def test_nothing_is_checked_against_an_empty_catalogue() -> None:
    assert requirement_warnings(provisioner(also=needs(keys.INSTANCE_TYPE, "In", "x")), ()) == ()


def test_provisioner_with_an_offering_in_its_zones_can_launch() -> None:
    assert launch_problem(provisioner(), make.site(), CATALOG) == ""


def test_provisioner_without_offering_or_subnet_cannot_launch() -> None:
    owner = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "x9.huge"))
    elsewhere = ProvisionerSite(provisioner="default", zones=("eu-west-1a",))
    nowhere = ProvisionerSite(provisioner="default", zones=(), reason="no subnet has the tags a=b")
    expected = "its requirements leave no instance type in eu-west-1a"
    assert launch_problem(provisioner(), elsewhere, CATALOG) == expected
    assert launch_problem(owner, make.site(), CATALOG).startswith("its requirements leave no")
    assert launch_problem(owner, nowhere, CATALOG) == "no subnet has the tags a=b"


def test_provisioner_whose_images_boot_nothing_that_it_asks_for_cannot_launch() -> None:
    lacking = replace(make.site(zones=("us-east-1a",)), without_image=frozenset({"c6g.large"}))
    owner = provisioner(requirements=needs(keys.ARCH, "In", "arm64"))
    assert launch_problem(owner, lacking, CATALOG) == (
        "its images boot none of the instance types that its requirements leave in us-east-1a"
    )
    nothing = provisioner(also=needs(keys.INSTANCE_TYPE, "In", "x9.huge"))
    expected = "its requirements leave no instance type in us-east-1a"
    assert launch_problem(nothing, lacking, CATALOG) == expected


def test_single_requirement_that_excludes_types_is_named() -> None:
    types = (make.instance_type("g5.xlarge"), make.instance_type("p4.xlarge"))
    families = needs(keys.INSTANCE_FAMILY, "In", "m5")
    owner = provisioner(also=families)
    assert excluding_requirement(owner, types) == "karpenter.k8s.aws/instance-family in [m5]"
    both = provisioner(also=families.merge(needs(keys.ARCH, "In", "arm64")))
    mixed = (make.instance_type("m5.xlarge"), make.instance_type("g5.xlarge", arch="arm64"))
    assert excluding_requirement(both, mixed) == ""
    assert excluding_requirement(provisioner(), types) == ""
    assert excluding_requirement(owner, ()) == ""
