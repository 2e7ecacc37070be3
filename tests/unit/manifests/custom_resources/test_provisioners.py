"""Provisioners: what is read, and what is filled in."""

from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.custom_resources.provisioners import decode_provisioner, decode_provisioners
from shared.manifests.problems import InvalidProvisionerError
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.policy import PreferencePolicy
from shared.model.requirements import Requirement
from shared.model.resources import Resources
from tests.unit.manifests.documents import described, one_problem, problems, provisioner, wants

ANNOTATIONS = {"example.com/note": "any text at all", "karpenter.sh/do-not-consolidate": "true"}


def test_a_walkthrough_is_read_whole() -> None:
    found = decode_provisioner(
        provisioner(
            labels={"team": "a"},
            annotations=ANNOTATIONS,
            requirements=[
                wants("node.kubernetes.io/instance-type", "In", "m5.large", "m5.2xlarge"),
                wants("topology.kubernetes.io/zone", "In", "us-west-2a", "us-west-2b"),
                wants("kubernetes.io/arch", "In", "arm64", "amd64"),
                wants("karpenter.sh/capacity-type", "In", "spot", "on-demand"),
            ],
            taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "true"}],
            startupTaints=[{"key": "cilium", "effect": "NoExecute"}],
            ttlSecondsAfterEmpty=30,
            ttlSecondsUntilExpired=2592000,
            limits={"resources": {"cpu": 1000, "memory": "1000Gi", "nvidia.com/gpu": 4}},
            weight=7,
            consolidation={"enabled": False},
        )
    )
    assert (found.name, found.uid, found.resource_version, found.generation) == (
        "default",
        "u",
        "9",
        3,
    )
    assert found.labels == {"team": "a"}
    assert found.annotations == ANNOTATIONS
    assert [requirement.describe() for requirement in found.requirements] == [
        "karpenter.sh/capacity-type in [on-demand, spot]",
        "kubernetes.io/arch in [amd64, arm64]",
        "kubernetes.io/os in [linux]",
        "node.kubernetes.io/instance-type in [m5.2xlarge, m5.large]",
        "team in [a]",
        "topology.kubernetes.io/zone in [us-west-2a, us-west-2b]",
    ]
    assert found.taints == (Taint(key="nvidia.com/gpu", value="true", effect=Effect.NO_SCHEDULE),)
    assert found.startup_taints == (Taint(key="cilium", effect=Effect.NO_EXECUTE),)
    assert found.ttl_after_empty == timedelta(seconds=30)
    assert found.ttl_until_expired == timedelta(days=30)
    assert found.limits == Resources.from_mapping(
        {"cpu": 1_000_000, "memory": 1000 * 2**30, "nvidia.com/gpu": 4}
    )
    assert (found.weight, found.consolidation, found.deleting, found.paused) == (
        7,
        False,
        False,
        False,
    )


def test_nothing_mentioned_gets_the_defaults() -> None:
    assert described(provisioner()) == [
        "karpenter.k8s.aws/instance-category in [c, m, r]",
        "karpenter.k8s.aws/instance-generation >= 3",
        "karpenter.sh/capacity-type in [on-demand]",
        "kubernetes.io/arch in [amd64]",
        "kubernetes.io/os in [linux]",
    ]
    found = decode_provisioner(provisioner())
    assert (found.ttl_after_empty, found.ttl_until_expired, found.limits) == (None, None, None)
    assert found.weight == 0


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
    ],
)
def test_provisioner_with_a_requirement_on_types_gets_no_default_types(key: str) -> None:
    found = decode_provisioner(provisioner(requirements=[wants(key, "Exists")])).requirements
    assert len(found.items) == 4


def test_a_label_counts_as_a_mention_and_aliases_too() -> None:
    found = decode_provisioner(
        provisioner(
            labels={"karpenter.sh/capacity-type": "spot"},
            requirements=[wants("beta.kubernetes.io/arch", "In", "arm64")],
        )
    ).requirements
    assert found.get("karpenter.sh/capacity-type") == Requirement.of(
        "karpenter.sh/capacity-type", "spot"
    )
    assert found.get("kubernetes.io/arch") == Requirement.of("kubernetes.io/arch", "arm64")


def test_a_document_in_a_list_may_lack_its_kind_and_empty_parts_mean_nothing() -> None:
    found = decode_provisioner(
        {
            "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "limits": {"resources": {}},
                "consolidation": {},
                "requirements": None,
                "labels": None,
                "provider": None,
            },
        }
    )
    assert found.deleting
    assert found.limits is None
    assert decode_provisioner(provisioner(limits={})).limits is None


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("", True), ("false", False), ("False", False)]
)
def test_the_pause_annotation_pauses_unless_it_says_false(value: str, *, expected: bool) -> None:
    raw = provisioner()
    raw["metadata"]["annotations"] = {"dovetail.dev/paused": value}
    assert decode_provisioner(raw).paused is expected


def test_all_problems_are_reported_and_the_error_is_of_the_house_tree() -> None:
    raw = provisioner(
        requirements=[wants(" karpenter.sh/capacity-type", "In", "spot"), wants("a", "Near", "b")],
        weight=101,
        ttlSecondsAfterEmpty=-1,
    )
    raw["limits"] = {"resources": {"cpu": 1}}
    found = problems(raw)
    assert [field_problem.field for field_problem in found] == [
        "spec.requirements[0].key",
        "spec.requirements[1].operator",
        "spec.ttlSecondsAfterEmpty",
        "spec.weight",
        "limits",
    ]
    with pytest.raises(InvalidManifestError, match=r"spec\.weight: 101: write a whole number"):
        decode_provisioner(raw)


@pytest.mark.parametrize(
    ("extra", "field", "words"),
    [
        ({"limits": {"resources": {}}}, "limits", "move it under spec: spec.limits"),
        ({"provider": {}}, "provider", "move it under spec: spec.provider"),
        ({"ttlSecondsAfterEmpty": 30}, "ttlSecondsAfterEmpty", "move it under spec"),
        ({"specs": {}}, "specs", "write spec"),
        ({"kind": "NodePool"}, "kind", "use one of Provisioner"),
        ({"apiVersion": "karpenter.sh/v1"}, "apiVersion", "use one of karpenter.sh/v1alpha5"),
        ({"spec": []}, "spec", "object"),
    ],
)
def test_a_wrong_document_is_refused(extra: dict[str, Any], field: str, words: str) -> None:
    one_problem({**provisioner(), **extra}, field, words)


def test_one_bad_provisioner_never_hides_the_others() -> None:
    good, bad, second = provisioner(), provisioner(weight=999), provisioner()
    good["metadata"] = {"name": "b"}
    second["metadata"] = {"name": "a"}
    usable, unusable = decode_provisioners([good, bad, second])
    assert [other_provisioner.name for other_provisioner in usable] == ["a", "b"]
    (found,) = unusable
    assert (found.name, found.uid, found.resource_version) == ("default", "u", "9")
    assert found.reasons == ("spec.weight: 999: write a whole number from 1 to 100",)


def test_a_limit_on_a_resource_that_no_machine_has_is_a_warning() -> None:
    found = decode_provisioner(provisioner(limits={"resources": {"gpu": 100, "cpu": "0"}}))
    (warning,) = found.warnings
    assert warning.startswith("spec.limits.resources.gpu: 100: no instance has a resource")
    assert "nvidia.com/gpu" in warning
    assert found.limits == Resources((("cpu", 0),))
    only = decode_provisioner(provisioner(limits={"resources": {"gpu": 100}}))
    assert (only.limits, len(only.warnings)) == (None, 1)


def test_a_zero_is_a_limit_and_a_reserve() -> None:
    limits = {"resources": {"nvidia.com/gpu": "0", "hugepages-2Mi": 0}}
    found = decode_provisioner(
        provisioner(limits=limits, kubeletConfiguration={"kubeReserved": {"cpu": "0"}})
    )
    assert found.limits == Resources((("hugepages-2Mi", 0), ("nvidia.com/gpu", 0)))
    assert found.kubelet.kube_reserved == Resources((("cpu", 0),))
    assert found.warnings == ()


def test_the_preference_policy_is_read_from_the_annotations() -> None:
    raw = provisioner()
    assert decode_provisioner(raw).preference_policy is None
    raw["metadata"]["annotations"] = {"dovetail.dev/preference-policy": "Respect"}
    assert decode_provisioner(raw).preference_policy == PreferencePolicy.RESPECT
    raw["metadata"]["annotations"] = {"dovetail.dev/preference-policy": "respect"}
    with pytest.raises(InvalidProvisionerError, match="write Respect or Weigh or Ignore"):
        decode_provisioner(raw)


def test_brakes_are_read_from_the_annotations() -> None:
    raw = provisioner()
    raw["metadata"]["annotations"] = {"dovetail.dev/shadow": "true", "dovetail.dev/max-nodes": "3"}
    found = decode_provisioner(raw)
    assert (found.shadow, found.ceiling.max_nodes, found.paused) == (True, 3, False)
