"""AWSNodeTemplates among the files of an offline plan."""

from typing import Any

import pytest

from functions.cli.plan.reading.documents import InvalidDocumentError
from tests.unit.cli.running import PROVISIONER, read
from tests.unit.manifests.documents import template

PLAIN: dict[str, Any] = dict(PROVISIONER)
NAMING = {**PLAIN, "spec": {**PLAIN["spec"], "providerRef": {"name": "nodes"}}}


def test_provisioner_is_planned_with_its_template_in_any_order() -> None:
    found = read(NAMING, template(amiFamily="Bottlerocket"))
    assert found.snapshot.provisioners[0].template.ami_family == "Bottlerocket"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("raws", "words"),
    [
        ((NAMING,), r"a: document 1: spec.providerRef.name: nodes: there is no AWSNodeTemplate"),
        (
            (PLAIN, template(userData="echo")),
            r"a: document 2: AWSNodeTemplate nodes.spec.userData, line 1: echo: write a NodeC",
        ),
        (
            ({**PLAIN, "spec": {**PLAIN["spec"], "provider": {"userData": "echo"}}},),
            r"a: document 1: spec.provider.userData, line 1: echo: write a NodeC",
        ),
        ((template(), template(amiFamily="AL2")), "another AWSNodeTemplate of that name"),
    ],
)
def test_a_wrong_or_missing_template_is_named(raws: Any, words: str) -> None:
    with pytest.raises(InvalidDocumentError, match=words):
        read(*raws)
