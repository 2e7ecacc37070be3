from typing import Any

import pytest

from shared.manifests.daemonsets import decode_daemonset, decode_daemonsets, names_runtime_class
from shared.manifests.runtime_classes import runtimes_by_name, with_runtime
from shared.model.errors import NotAdmittedError
from shared.model.kubernetes.taints import Toleration
from shared.model.requirements import Requirements
from shared.model.resources import Resources

KATA: dict[str, Any] = {
    "metadata": {"name": "kata"},
    "overhead": {"podFixed": {"cpu": "50m"}},
    "scheduling": {
        "nodeSelector": {"runtime": "kata"},
        "tolerations": [{"key": "kata", "operator": "Exists"}],
    },
}
PLAIN = {"metadata": {"name": "plain"}}
KNOWN = runtimes_by_name([KATA, PLAIN])


def daemonset(selector: Any = None, **spec: Any) -> dict[str, Any]:
    inside = {"containers": [{"resources": {"limits": {"cpu": "100m"}}}], **spec}
    return {
        "metadata": {"namespace": "kube-system", "name": "agent"},
        "spec": {
            "selector": selector,
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": inside},
        },
    }


def test_a_runtime_class_adds_its_overhead_and_its_nodes() -> None:
    spec = {
        "runtimeClassName": "kata",
        "nodeSelector": {"team": "a", "runtime": "kata"},
        "tolerations": [{"key": "own"}],
    }
    assert with_runtime(spec, KNOWN) == {
        **spec,
        "overhead": {"cpu": "50m"},
        "nodeSelector": {"team": "a", "runtime": "kata"},
        "tolerations": [{"key": "own"}, {"key": "kata", "operator": "Exists"}],
    }
    assert with_runtime({"runtimeClassName": "plain"}, KNOWN) == {"runtimeClassName": "plain"}


def test_a_class_that_is_not_given_adds_nothing() -> None:
    unknown = {"runtimeClassName": "other", "overhead": {"cpu": "1"}}
    assert with_runtime(unknown, KNOWN) is unknown


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "kata", "overhead": {"cpu": "1"}}, "overhead is not that of its"),
        ({"runtimeClassName": "plain", "overhead": {"cpu": "1"}}, "overhead is not that of its"),
        ({"overhead": {"cpu": "1"}}, "overhead is not that of its RuntimeClass"),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}},
            "nodeSelector asks for runtime=runc, its RuntimeClass kata kata",
        ),
    ],
    ids=["another overhead", "one where the class has none", "one without a class", "another node"],
)
def test_a_pod_against_its_runtime_class_is_refused(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(NotAdmittedError, match=why):
        with_runtime(spec, KNOWN)


EQUAL = {"key": "a", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
EXISTS = {"key": "a", "operator": "Exists"}
ALL = {"operator": "Exists"}


def evicted(seconds: int | None = None) -> dict[str, Any]:
    given = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": "a", "operator": "Exists", "effect": "NoExecute", **given}


@pytest.mark.parametrize(
    ("own", "of_class", "merged"),
    [
        ([EQUAL], [EXISTS], [EXISTS]),
        ([EXISTS], [EQUAL], [EXISTS]),
        ([EQUAL], [EQUAL], [EQUAL]),
        ([EQUAL], [ALL], [ALL]),
        ([EQUAL], [{**EQUAL, "value": "y"}], [EQUAL, {**EQUAL, "value": "y"}]),
        ([EQUAL], [{"key": "b"}], [EQUAL, {"key": "b"}]),
        ([EQUAL], [{**EQUAL, "effect": ""}], [{**EQUAL, "effect": ""}]),
        ([evicted(5)], [evicted()], [evicted()]),
        ([evicted(5)], [evicted(9)], [evicted(9)]),
        ([evicted(9)], [{**EQUAL, "effect": "NoExecute"}], 2),
    ],
    ids=[
        *("wider later", "wider first", "equal", "every taint", "other value", "other key"),
        *("every effect", "for ever", "for longer", "shorter and for ever"),
    ],
)
def test_of_tolerations_that_cover_each_other_the_wider_stays(
    own: list[Any], of_class: list[Any], merged: Any
) -> None:
    runtime = {"metadata": {"name": "r"}, "scheduling": {"tolerations": of_class}}
    spec = {"runtimeClassName": "r", "tolerations": own}
    found = with_runtime(spec, runtimes_by_name([runtime]))["tolerations"]
    assert found == ([*own, *of_class] if merged == 2 else merged)


def test_daemons_take_their_limits_and_the_overhead_of_their_runtime() -> None:
    raw = daemonset(runtimeClassName="kata")
    assert names_runtime_class([raw])
    assert not names_runtime_class([daemonset()])
    (found,) = decode_daemonsets([raw], [KATA])
    assert found.scheduling.requests == Resources.of(cpu=150, pods=1)
    assert found.scheduling.node_selector == Requirements.from_labels({"runtime": "kata"})
    assert Toleration(key="kata", operator="Exists") in found.scheduling.tolerations


def test_a_selector_that_selects_no_daemon_is_a_problem() -> None:
    assert decode_daemonset(daemonset({"matchLabels": {"app": "agent"}})).problem == ""
    assert decode_daemonset(daemonset()).problem == ""
    wrong = decode_daemonset(daemonset({"matchLabels": {"app": "other"}}))
    assert wrong.problem == "spec.selector does not select the labels of spec.template"
    expression = {"key": "app", "operator": "Near", "values": ["x"]}
    unknown = decode_daemonset(daemonset({"matchExpressions": [expression]}))
    assert "operator 'Near' is unknown" in unknown.problem
