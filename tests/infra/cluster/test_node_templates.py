"""The CRD of AWSNodeTemplates: what it accepts and refuses, in agreement with the functions."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.kube.kinds import custom_resources
from shared.manifests.api.aws_node_template import WITHOUT_LAUNCH_TEMPLATE
from shared.manifests.custom_resources import node_templates
from shared.manifests.problems import FieldProblem
from tests.infra.cluster.provisioner_documents import WHOLE as PROVISIONER
from tests.infra.cluster.provisioner_documents import complaints, document

PATH = Path(__file__).resolve().parents[3] / "infra" / "cluster" / "node_templates.yaml"
CRD: dict[str, Any] = yaml.safe_load(PATH.read_text())
(VERSION,) = CRD["spec"]["versions"]
SCHEMA: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]
OWN: dict[str, Any] = SCHEMA["properties"]["spec"]
(RESOURCE,) = custom_resources(CRD)
WHOLE: dict[str, Any] = {
    **{k: v for k, v in PROVISIONER["provider"].items() if k not in ("apiVersion", "kind")},
    "amiFamily": "Bottlerocket",
    "amiSelector": {"team": "red", "aws::owners": "self"},
    "userData": "[settings.host-containers.admin]\nenabled = true\n",
    "detailedMonitoring": True,
    "context": "ctx-1",
}


def template(spec: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": "nodes"},
        "spec": deepcopy(spec),
        **beside,
    }


def said(manifest: dict[str, Any]) -> list[str]:
    return complaints(manifest, RESOURCE)


def refused_by_functions(manifest: dict[str, Any]) -> bool:
    problems: list[FieldProblem] = []
    node_templates.read_node_template(manifest, problems)
    return bool(problems)


def test_a_template_with_everything_passes_here_and_in_the_functions() -> None:
    assert said(template(WHOLE)) == []
    assert not refused_by_functions(template(WHOLE))
    assert said(template({})) == []


@pytest.mark.parametrize("field", sorted(OWN["properties"]))
def test_a_field_beside_spec_is_refused_with_its_place(field: str) -> None:
    manifest = template({}, **{field: WHOLE.get(field, "x")})
    assert [value for value in said(manifest) if f"move it to spec.{field}" in value]
    assert refused_by_functions(manifest)


@pytest.mark.parametrize("field", WITHOUT_LAUNCH_TEMPLATE)
def test_a_custom_launch_template_excludes_other_fields(field: str) -> None:
    manifest = template({"launchTemplate": "mine", field: WHOLE[field]})
    assert "launchTemplate already decides" in said(manifest)[0]
    assert refused_by_functions(manifest)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"amiFamily": "Windows2022"}, "supported values"),
        ({"amiFamily": "Custom"}, "add amiSelector"),
        ({"amiSelector": {"aws-ids": "ami-1", "team": "red"}}, "ids leave nothing to select"),
        ({"amiSelector": {"": "x"}}, "must not be empty"),
        ({"userData": 3}, "string"),
        ({"detailedMonitoring": "yes"}, "boolean"),
        ({"context": 3}, "string"),
    ],
)
def test_a_wrong_template_is_refused_here_and_in_the_functions(
    spec: dict[str, Any], words: str
) -> None:
    assert words in said(template(spec))[0]
    assert refused_by_functions(template(spec))


@pytest.mark.parametrize("reference", [{}, {"name": "x", "kind": "EC2NodeClass"}])
def test_a_reference_to_something_else_is_refused(reference: dict[str, Any]) -> None:
    assert complaints(document({"providerRef": reference}))
