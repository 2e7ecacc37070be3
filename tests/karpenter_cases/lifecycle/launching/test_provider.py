"""The AWS half of a Provisioner: what is taken and what is refused."""

from typing import Any

import pytest

from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import InvalidProvisionerError
from shared.model import labels as keys
from shared.model.provisioner import MetadataOptions, Provisioner

WHOLE = {
    "apiVersion": "extensions.karpenter.sh/v1alpha1",
    "kind": "AWS",
    "instanceProfile": "test-instance-profile",
    "subnetSelector": {"*": "*"},
    "securityGroupSelector": {"*": "*"},
    "tags": {"team": "red"},
}
OPTIONS = {
    "httpEndpoint": ("enabled", "disabled"),
    "httpProtocolIPv6": ("enabled", "disabled"),
    "httpTokens": ("required", "optional"),
}


def read(provider: dict[str, Any] | None = None, **spec: Any) -> Provisioner:
    given = {**spec, **({} if provider is None else {"provider": provider})}
    return decode_provisioner(
        {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": "default"},
            "spec": given,
        }
    )


def refused(provider: dict[str, Any] | None = None, **spec: Any) -> str:
    with pytest.raises(InvalidProvisionerError) as caught:
        read(provider, **spec)
    (problem,) = caught.value.problems
    return problem.field


def test_a_whole_block_is_taken() -> None:
    assert read(WHOLE).template.tags == {"team": "red"}


def test_no_block_at_all_is_taken() -> None:
    assert read().template.ami_family == "AL2023"


def test_the_default_profile_is_not_written_into_the_provisioner() -> None:
    assert read({}).template.instance_profile == ""


def test_requirements_have_defaults() -> None:
    found = {requirement.key: sorted(requirement.values) for requirement in read().requirements}
    assert found[keys.CAPACITY_TYPE] == ["on-demand"]
    assert found[keys.ARCH] == ["amd64"]


@pytest.mark.parametrize("field", ["subnetSelector", "securityGroupSelector"])
def test_a_selector_has_no_empty_name_and_no_empty_value(field: str) -> None:
    assert refused({field: {"": "value"}}) == f"spec.provider.{field}."
    assert refused({field: {"key": ""}}) == f"spec.provider.{field}.key"


def test_an_unknown_label_of_the_provider_is_refused() -> None:
    key = "karpenter.k8s.aws/unknown"
    assert refused(labels={key: "x"}) == f"spec.labels.{key}"


def test_a_capacity_type_may_be_a_label() -> None:
    found = {
        requirement.key: sorted(requirement.values)
        for requirement in read(labels={keys.CAPACITY_TYPE: "spot"}).requirements
    }
    assert found[keys.CAPACITY_TYPE] == ["spot"]


def test_options_that_are_left_out_have_defaults() -> None:
    assert read({"metadataOptions": {}}).template.metadata_options == MetadataOptions()


@pytest.mark.parametrize("field", sorted(OPTIONS))
def test_an_option_is_one_of_its_choices(field: str) -> None:
    for value in OPTIONS[field]:
        read({"metadataOptions": {field: value}})


@pytest.mark.parametrize("field", sorted(OPTIONS))
def test_an_option_is_nothing_else(field: str) -> None:
    assert refused({"metadataOptions": {field: "other"}}).endswith(field)


@pytest.mark.parametrize("hops", [1, 64])
def test_hops_are_within_their_range(hops: int) -> None:
    options = read({"metadataOptions": {"httpPutResponseHopLimit": hops}}).template.metadata_options
    assert options.http_put_response_hop_limit == hops


@pytest.mark.parametrize("hops", [-5, 0, 65])
def test_hops_beyond_their_range_are_refused(hops: int) -> None:
    assert refused({"metadataOptions": {"httpPutResponseHopLimit": hops}}).endswith("HopLimit")
