"""Raw Provisioners, and what decoding them says."""

from typing import Any

import pytest

from shared.instance_types.ami_families import refuse_wrong_user_data
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


CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "nodes"}


def node_pool(
    spec: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a NodePool: `spec` is that of its template, `more` what is beside the template."""
    template = {"metadata": metadata} if metadata is not None else {}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "uid": "u", "resourceVersion": "9", "generation": 3},
        "spec": {
            "template": {
                **template,
                "spec": {"nodeClassRef": CLASS_REF, "requirements": [], **(spec or {})},
            },
            **more,
        },
    }


def node_class(name: str = "nodes", **spec: Any) -> dict[str, Any]:
    tagged = [{"tags": {"karpenter.sh/discovery": "demo"}}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": name},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "instanceProfile": "workers",
            "subnetSelectorTerms": tagged,
            "securityGroupSelectorTerms": tagged,
            **spec,
        },
    }
