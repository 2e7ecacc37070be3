"""The CRD: what it lets pass and what it refuses, in agreement with the functions."""

from typing import Any

import pytest

from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import InvalidProvisionerError
from shared.model import labels
from tests.infra.cluster.provisioner_documents import (
    REFUSED,
    SPEC,
    WHOLE,
    complaints,
    document,
    requirement,
)


def _refused_by_functions(manifest: dict[str, Any]) -> bool:
    try:
        decode_provisioner(manifest)
    except InvalidProvisionerError:
        return True
    return False


def test_a_manifest_with_everything_passes_here_and_in_the_functions() -> None:
    assert complaints(document(WHOLE)) == []
    assert not _refused_by_functions(document(WHOLE))


def test_an_empty_spec_passes() -> None:
    assert complaints(document({})) == []


@pytest.mark.parametrize(
    ("spec", "said"), [entry[1:] for entry in REFUSED], ids=[entry[0] for entry in REFUSED]
)
def test_a_wrong_manifest_is_refused_here_and_in_the_functions(
    spec: dict[str, Any], said: str
) -> None:
    found = complaints(document(spec))

    assert found
    assert said in found[0]
    assert _refused_by_functions(document(spec))


@pytest.mark.parametrize("field", sorted(SPEC["properties"]))
def test_a_field_of_spec_beside_it_is_refused_with_its_place(field: str) -> None:
    value = WHOLE.get(field, {})
    found = complaints(document({}, **{field: value}))

    assert [item for item in found if f"move it to spec.{field}" in item]


def test_a_manifest_without_spec_is_refused() -> None:
    manifest = document({})
    del manifest["spec"]

    assert complaints(manifest) == ["spec: Required value"]


def test_a_name_that_cannot_be_a_label_value_is_refused() -> None:
    manifest = document({}, metadata={"name": "n" * 64})

    assert "at most 63 characters" in complaints(manifest)[0]


@pytest.mark.parametrize(
    "key",
    sorted(
        labels.WELL_KNOWN
        | set(labels.ALIASES)
        | {
            "karpenter.sh/emptiness-timestamp",
            "kubernetes.io/hostname",
            "team",
            "example.com/team",
            "kops.k8s.io/instancegroup",
            "node.kubernetes.io/anything",
            "a.node-restriction.kubernetes.io/b",
            "sub.domain.k8s.io/x",
            "notkubernetes.io/x",
            "karpenter.k8s.aws/unknown",
            "k8s.aws/x",
            "dovetail.dev/x",
        }
    ),
)
def test_the_schema_restricts_the_keys_the_functions_restrict(key: str) -> None:
    expected = labels.is_restricted(key)
    as_label = complaints(document({"labels": {key: "a"}}))
    as_requirement = complaints(document(requirement(key, "Exists")))

    assert bool(as_label) == expected
    assert bool(as_requirement) == expected
