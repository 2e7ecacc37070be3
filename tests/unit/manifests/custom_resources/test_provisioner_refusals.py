"""Every way in which the spec of a Provisioner is refused."""

from typing import Any

import pytest

from tests.unit.manifests.documents import one_problem, problems, provisioner, wants


@pytest.mark.parametrize("name", ["n" * 64, "-a", "a b", "a\ud800"])
def test_a_name_that_no_label_can_have_is_refused(name: str) -> None:
    named = {**provisioner(), "metadata": {"name": name}}
    one_problem(named, "metadata.name", "becomes a label of each node; write at most 63")


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        # --- the spec itself
        ({"providerRef": {"name": "x"}}, "spec.providerRef.name", "there is no AWSNodeTemplate"),
        ({"ttlSecondsAfterEmtpy": 3}, "spec.ttlSecondsAfterEmtpy", "write ttlSecondsAfterEmpty"),
        ({"zzz": 3}, "spec.zzz", "known are"),
        ({"ttlSecondsUntilExpired": "3d"}, "spec.ttlSecondsUntilExpired", "whole number"),
        ({"ttlSecondsUntilExpired": True}, "spec.ttlSecondsUntilExpired", "whole number"),
        ({"ttlSecondsUntilExpired": 10**18}, "spec.ttlSecondsUntilExpired", "whole number"),
        ({"ttlSecondsAfterEmpty": -1}, "spec.ttlSecondsAfterEmpty", "whole number"),
        ({"weight": 0}, "spec.weight", "from 1 to 100"),
        ({"consolidation": {"enabled": "yes"}}, "spec.consolidation.enabled", "true or false"),
        ({"consolidation": {"on": True}}, "spec.consolidation.on", "unknown field"),
        (
            {"consolidation": {"enabled": True}, "ttlSecondsAfterEmpty": 30},
            "spec.ttlSecondsAfterEmpty",
            "remove it",
        ),
        # --- limits
        ({"limits": {"cpu": 5}}, "spec.limits.cpu", "under limits.resources"),
        ({"limits": {"resources": {"cpu": "1GiB"}}}, "spec.limits.resources.cpu", "quantity"),
        ({"limits": {"resources": {"cpu": -1}}}, "spec.limits.resources.cpu", "0 or more"),
        ({"limits": {"resources": [1]}}, "spec.limits.resources", "object"),
        # --- labels and annotations
        ({"labels": {"kubernetes.io/hostname": "x"}}, "spec.labels.kubernetes.io/hostname", "own"),
        ({"labels": {"node.k8s.io/x": "y"}}, "spec.labels.node.k8s.io/x", "belongs to"),
        ({"labels": {"a": "white space"}}, "spec.labels.a", "at most 63"),
        ({"labels": {"a": 1}}, "spec.labels.a", "in quotes"),
        ({"labels": {" a": "b"}}, "spec.labels. a", "write 'a'"),
        ({"labels": "a=b"}, "spec.labels", "object"),
        ({"annotations": {"a//b": "c"}}, "spec.annotations.a//b", "write a key such as"),
        *(
            ({"annotations": {key: "x"}}, f"spec.annotations.{key}", "do-not-consolidate may be")
            for key in (
                "dovetail.dev/drain-deadline",
                "dovetail.dev/removal-reason",
                "dovetail.dev/replaces",
                "karpenter.sh/emptiness-timestamp",
            )
        ),
        ({"labels": {"dovetail.dev/x": "y"}}, "spec.labels.dovetail.dev/x", "belongs to"),
        # --- requirements
        ({"requirements": {"key": "a"}}, "spec.requirements", "list of objects"),
        ({"requirements": ["a"]}, "spec.requirements[0]", "write an object"),
        (
            {"requirements": [wants(" karpenter.sh/capacity-type", "In", "spot")]},
            "spec.requirements[0].key",
            "remove the space around the key: write 'karpenter.sh/capacity-type'",
        ),
        (
            {"requirements": [wants("node.k8s.aws/instance-type", "in", "m5.large")]},
            "spec.requirements[0].operator",
            "use one of In, NotIn",
        ),
        ({"requirements": [{"key": "a"}]}, "spec.requirements[0].operator", "one of In"),
        (
            {"requirements": [wants("karpenter.sh/provisioner-name", "Exists")]},
            "spec.requirements[0].key",
            "belongs to",
        ),
        ({"requirements": [wants("", "Exists")]}, "spec.requirements[0].key", "write a key"),
        ({"requirements": [wants("a", "In")]}, "spec.requirements[0].values", "at least one"),
        (
            {"requirements": [wants("a", "Exists", "b")]},
            "spec.requirements[0].values",
            "takes no values",
        ),
        (
            {"requirements": [wants("a", "Gt", "1", "2")]},
            "spec.requirements[0].values",
            "exactly one integer",
        ),
        (
            {"requirements": [wants("a", "Lt", "-1")]},
            "spec.requirements[0].values[0]",
            "at most 63",
        ),
        (
            {"requirements": [wants("a", "In", "b c")]},
            "spec.requirements[0].values[0]",
            "at most 63",
        ),
        (
            {"requirements": [{"key": "a", "operator": "In", "values": [1]}]},
            "spec.requirements[0].values[0]",
            "in quotes",
        ),
        (
            {"requirements": [{**wants("a", "In", "1"), "minValues": 2}]},
            "spec.requirements[0].minValues",
            "unknown field",
        ),
        (
            {"requirements": [wants("a", "In", "1"), wants("a", "NotIn", "1")]},
            "spec.requirements",
            "no value satisfies",
        ),
        (
            {"labels": {"a": "1"}, "requirements": [wants("a", "DoesNotExist")]},
            "spec.requirements",
            "no value satisfies",
        ),
        (
            {"requirements": [wants("karpenter.sh/capacity-type", "In", "onDemand")]},
            "spec.requirements",
            "at least one of on-demand, spot",
        ),
        (
            {"requirements": [wants("kubernetes.io/os", "In", "windows")]},
            "spec.requirements",
            "at least one of linux",
        ),
        (
            {
                "requirements": [
                    wants("kubernetes.io/arch", "In", "arm64"),
                    wants("kubernetes.io/arch", "In", "amd64"),
                ]
            },
            "spec.requirements",
            "no value satisfies",
        ),
        # --- taints
        ({"taints": [{"key": "a"}]}, "spec.taints[0].effect", "one of NoSchedule"),
        ({"taints": [{"key": "a", "effect": "No"}]}, "spec.taints[0].effect", "NoExecute"),
        ({"taints": [{"effect": "NoSchedule"}]}, "spec.taints[0].key", "write a key"),
        (
            {"taints": [{"key": "a", "effect": "NoSchedule", "value": "b c"}]},
            "spec.taints[0].value",
            "at most 63",
        ),
        (
            {"taints": [{"key": "a", "effect": "NoSchedule", "operator": "Exists"}]},
            "spec.taints[0].operator",
            "unknown field",
        ),
        (
            {
                "taints": [{"key": "a", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "a", "effect": "NoSchedule", "value": "b"}],
            },
            "spec.startupTaints[0].key",
            "another taint",
        ),
    ],
)
def test_a_wrong_spec_is_refused(spec: dict[str, Any], field: str, words: str) -> None:
    one_problem(provisioner(**spec), field, words)


def test_a_negative_bound_is_refused() -> None:
    raw = provisioner(requirements=[{"key": "a", "operator": "Gt", "values": ["-5"]}])
    assert {problem.field for problem in problems(raw)} == {"spec.requirements[0].values[0]"}
