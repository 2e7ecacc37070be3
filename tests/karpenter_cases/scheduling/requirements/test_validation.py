"""Which Provisioners are taken and which are refused, with the field that is wrong."""

from typing import Any

import pytest

from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import InvalidProvisionerError
from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from tests.karpenter_cases.scheduling.writing import Raw, taint, wants


def taken(**spec: Any) -> Provisioner:
    return decode_provisioner(
        {
            "apiVersion": "karpenter.sh/v1alpha5",
            "kind": "Provisioner",
            "metadata": {"name": "default"},
            "spec": spec,
        }
    )


def refused(**spec: Any) -> list[str]:
    """Return the fields that are wrong."""
    with pytest.raises(InvalidProvisionerError) as caught:
        taken(**spec)
    return [problem.field for problem in caught.value.problems]


@pytest.mark.parametrize("field", ["ttlSecondsUntilExpired", "ttlSecondsAfterEmpty"])
def test_a_span_below_nothing_is_refused(field: str) -> None:
    assert refused(**{field: -1}) == [f"spec.{field}"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="undefined"),
        pytest.param({"limits": {}}, id="empty"),
        pytest.param({"limits": {"resources": {}}}, id="no-resources"),
    ],
)
def test_limits_may_be_left_out(spec: dict[str, Any]) -> None:
    assert taken(**spec).limits is None


def test_labels_of_the_users_own_are_taken() -> None:
    assert dict(taken(labels={"example.com/team": "red"}).labels) == {"example.com/team": "red"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("spaces are not allowed", "red", id="key"),
        pytest.param("example.com/team", "/ is not allowed", id="value"),
    ],
)
def test_a_label_that_is_written_wrong_is_refused(key: str, value: str) -> None:
    assert refused(labels={key: value}) == [f"spec.labels.{key}"]


def test_every_restricted_label_is_refused() -> None:
    restricted = (keys.HOSTNAME, keys.EMPTINESS_TIMESTAMP, keys.PROVISIONER_NAME)
    fields = refused(labels=dict.fromkeys(restricted, "x"))
    assert sorted(fields) == sorted(f"spec.labels.{key}" for key in restricted)


def test_every_restricted_domain_is_refused() -> None:
    domains = ("kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws", "a.kubernetes.io")
    fields = refused(labels={f"{domain}/custom": "x" for domain in domains})
    assert sorted(fields) == sorted(f"spec.labels.{domain}/custom" for domain in domains)


def test_labels_of_kops_are_taken() -> None:
    labels = {"kops.k8s.io/instancegroup": "nodes", "kops.k8s.io/gpu": "1"}
    assert dict(taken(labels=labels).labels) == labels


def test_taints_are_taken_with_and_without_a_value() -> None:
    found = taken(
        taints=[
            taint("a", "NoSchedule", "b"),
            taint("c", "NoExecute"),
            taint("d.io/e", "NoExecute"),
        ]
    )
    assert [other_taint.describe() for other_taint in found.taints] == [
        "a=b:NoSchedule",
        "c:NoExecute",
        "d.io/e:NoExecute",
    ]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        pytest.param(taint("???", "NoSchedule"), "key", id="key"),
        pytest.param({"effect": "NoSchedule"}, "key", id="no-key"),
        pytest.param(taint("a", "NoSchedule", "???"), "value", id="value"),
        pytest.param(taint("a", "Never"), "effect", id="effect"),
    ],
)
def test_a_taint_with_a_wrong_part_is_refused(wrong: Raw, field: str) -> None:
    assert f"spec.taints[0].{field}" in refused(taints=[wrong])


def test_all_operators_are_taken() -> None:
    written = [
        wants("a", "In", "1"),
        wants("b", "NotIn", "1"),
        wants("c", "Exists"),
        wants("d", "DoesNotExist"),
        wants("e", "Gt", "1"),
        wants("f", "Lt", "1"),
    ]
    assert {requirement.key for requirement in taken(requirements=written).requirements} >= set(
        "abcdef"
    )


@pytest.mark.parametrize("operator", ["unknown", "", "in"])
def test_another_operator_is_refused(operator: str) -> None:
    wrong = wants(keys.ZONE, operator, "zone-a")
    assert refused(requirements=[wrong]) == ["spec.requirements[0].operator"]


def test_well_known_labels_are_taken() -> None:
    values = {keys.ARCH: "arm64", keys.OS: "linux", keys.CAPACITY_TYPE: "spot"}
    for key in sorted(keys.WELL_KNOWN - keys.OWNER_LABELS):
        written = [wants(key, "In", values.get(key, "1"))]
        found = taken(requirements=written).requirements.get(key)
        assert found is not None
        assert found.values == {values.get(key, "1")}


@pytest.mark.parametrize(
    "written",
    [
        pytest.param([wants("a", "In", "1"), wants("a", "In", "2")], id="disjoint"),
        pytest.param([wants("a", "In", "1"), wants("a", "NotIn", "1")], id="in-notin"),
        pytest.param([wants("a", "In", "1"), wants("a", "DoesNotExist")], id="in-absent"),
        pytest.param([wants("a", "Exists"), wants("a", "DoesNotExist")], id="exists-absent"),
    ],
)
def test_requirements_that_leave_nothing_are_refused(written: list[Raw]) -> None:
    assert refused(requirements=written) == ["spec.requirements"]


def test_no_requirements_are_fine() -> None:
    assert taken(requirements=[]).requirements == taken().requirements


def test_older_names_of_labels_become_the_stable_ones() -> None:
    for old, stable in sorted(keys.ALIASES.items()):
        value = {keys.ARCH: "amd64", keys.OS: "linux"}.get(stable, "x")
        found = taken(requirements=[wants(old, "In", value)]).requirements
        assert found.get(old) is None
        merged = found.get(stable)
        assert merged is not None
        assert merged.values == {value}
