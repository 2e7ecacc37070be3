"""Raw Provisioners, and what decoding them says."""

from typing import Any

import pytest

from shared.ami_families import refuse_wrong_user_data
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import FieldProblem, InvalidProvisionerError


def provisioner(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default", "uid": "u", "resourceVersion": "9", "generation": 3},
        "spec": spec,
    }


def template(name: str = "nodes", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def problems(raw: dict[str, Any]) -> tuple[FieldProblem, ...]:
    with pytest.raises(InvalidProvisionerError) as caught:
        decode_provisioner(raw, check=refuse_wrong_user_data)
    return caught.value.problems


def one_problem(raw: dict[str, Any], field: str, words: str) -> None:
    (found,) = problems(raw)
    assert found.field == field
    assert words in found.remedy


def described(raw: dict[str, Any]) -> list[str]:
    return [requirement.describe() for requirement in decode_provisioner(raw).requirements]


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}
