"""What the terms of an EC2NodeClass ask EC2 for."""

from typing import Any

from shared.aws.ec2.fleets_and_images import image_request
from tests.karpenter_cases.lifecycle.births import bought, image, only_data
from tests.karpenter_cases.v1.reading import class_of
from tests.karpenter_cases.v1.worlds import changed_class, named_pool, world


def asked(**term: Any) -> dict[str, Any]:
    """Return the request for images of one term."""
    spec = class_of(amiSelectorTerms=[term], amiFamily="AL2023")
    (found,) = spec.template.ami_selector
    return image_request(found)


def filters(request: dict[str, Any]) -> dict[str, list[str]]:
    return {entry["Name"]: entry["Values"] for entry in request["Filters"]}


def test_within_a_term_all_count_and_of_the_terms_one() -> None:
    pair = [{"tags": {"team": "red", "env": "prod"}}, {"tags": {"team": "blue"}}]
    first, second = class_of(subnetSelectorTerms=pair).template.subnet_selector
    assert first.tags == {"team": ("red",), "env": ("prod",)}
    assert second.tags == {"team": ("blue",)}
    own = changed_class(amiSelectorTerms=pair, amiFamily="AL2023")
    there = world(named_pool(), own)
    there.cloud.images = (image("ami-1", team="red"), image("ami-2", days=-9, team="blue"))
    assert only_data(bought(there))["ImageId"] == "ami-2"


def test_names_are_looked_for_among_own_images_and_amazons() -> None:
    named = asked(name="mine-*")
    assert sorted(named["Owners"]) == ["amazon", "self"]
    assert filters(named)["name"] == ["mine-*"]
    assert asked(name="mine-*", owner="123456789012")["Owners"] == ["123456789012"]
    for term in ({"id": "ami-1"}, {"tags": {"team": "red"}}):
        assert "Owners" not in asked(**term)


def test_a_parameter_of_the_users_own_is_what_is_asked_for() -> None:
    spec = class_of(amiSelectorTerms=[{"ssmParameter": "/mine"}], amiFamily="AL2023")
    (term,) = spec.template.ami_selector
    assert term.parameters == ("/mine",)
