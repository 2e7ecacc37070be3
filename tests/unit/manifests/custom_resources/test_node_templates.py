"""AWSNodeTemplates, and the Provisioners that name them."""

from typing import Any

import pytest

from shared.instance_types.ami_families import refuse_wrong_user_data
from shared.manifests.custom_resources.node_templates import (
    asks_for_templates,
    by_name,
    read_node_template,
)
from shared.manifests.custom_resources.provisioners import decode_provisioner, decode_provisioners
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from tests.unit.manifests.documents import provisioner, template


def wrong(raw: dict[str, Any], *templates: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidProvisionerError) as caught:
        decode_provisioner(raw, by_name(templates), check=refuse_wrong_user_data)
    return [f"{problem.field}: {problem.remedy}" for problem in caught.value.problems]


def test_a_provisioner_is_made_like_the_template_it_names() -> None:
    reference = {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "name": "nodes",
    }
    listed = by_name([template(tags={"team": "red"}), template("other")])
    found = decode_provisioner(provisioner(providerRef=reference), listed).template
    assert (found.name, found.tags) == ("nodes", {"team": "red"})
    assert decode_provisioner(provisioner(), listed).template.name == ""


def test_provider_and_reference_exclude_each_other() -> None:
    raw = provisioner(provider={}, providerRef={"name": "nodes"})
    (one,) = wrong(raw, template())
    assert one.startswith("spec.provider: remove it or providerRef")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nodes", "spec.providerRef: write an object"),
        ({}, "spec.providerRef.name: write the name of an AWSNodeTemplate"),
        ({"name": "none"}, "spec.providerRef.name: there is no AWSNodeTemplate of that name"),
        ({"name": "nodes", "kind": "EC2NodeClass"}, "spec.providerRef.kind: use one of AWSNode"),
        (
            {"name": "nodes", "apiVersion": "karpenter.k8s.aws/v1beta1"},
            "spec.providerRef.apiVersion: use one of karpenter.k8s.aws/v1alpha1",
        ),
        ({"name": "nodes", "namespace": "x"}, "spec.providerRef.namespace: unknown field"),
    ],
)
def test_a_wrong_reference_is_refused(reference: Any, words: str) -> None:
    (one,) = wrong(provisioner(providerRef=reference), template())
    assert one.startswith(words)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (template(amiFamly="AL2"), "AWSNodeTemplate nodes.spec.amiFamly: unknown field; write ami"),
        (template(amiFamily="Custom"), "AWSNodeTemplate nodes.spec.amiFamily: add amiSelector"),
        (
            {**template(), "amiFamily": "AL2"},
            "AWSNodeTemplate nodes.amiFamily: move it under spec: spec.amiFamily",
        ),
        ({**template(), "spec": 3}, "AWSNodeTemplate nodes.spec: write an object"),
        (
            {**template(), "apiVersion": "karpenter.k8s.aws/v1"},
            "AWSNodeTemplate nodes.apiVersion: use one of",
        ),
    ],
)
def test_a_wrong_template_is_a_problem_of_the_provisioner(raw: dict[str, Any], words: str) -> None:
    (one,) = wrong(provisioner(providerRef={"name": "nodes"}), raw)
    assert one.startswith(words)


def test_one_wrong_template_leaves_the_others_alone() -> None:
    usable, unusable = decode_provisioners(
        [
            provisioner(providerRef={"name": "nodes"}),
            {**provisioner(providerRef={"name": "bad"}), "metadata": {"name": "second"}},
        ],
        [template(), template("bad", userData="echo")],
        check=refuse_wrong_user_data,
    )
    assert [other_provisioner.name for other_provisioner in usable] == ["default"]
    assert [invalid_provisioner.name for invalid_provisioner in unusable] == ["second"]


def test_templates_are_asked_for_when_one_is_named() -> None:
    assert asks_for_templates([provisioner(), provisioner(providerRef={"name": "x"})])
    assert not asks_for_templates([provisioner(), {}])


def test_a_template_by_itself_is_checked() -> None:
    problems: list[FieldProblem] = []
    assert read_node_template(template(), problems).ami_family == "AL2023"
    read_node_template({"metadata": {"name": "x"}}, problems)
    assert [problem.field for problem in problems] == []
