from typing import Any

from shared.manifests.daemonsets import decode_daemonset, decode_daemonsets, wants_runtimes
from shared.manifests.runtime_classes import names_runtime, runtimes_by_name, with_runtime
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
        "nodeSelector": {"team": "a"},
        "tolerations": [{"key": "own"}],
    }
    assert names_runtime(spec)
    assert with_runtime(spec, KNOWN) == {
        **spec,
        "overhead": {"cpu": "50m"},
        "nodeSelector": {"team": "a", "runtime": "kata"},
        "tolerations": [{"key": "own"}, {"key": "kata", "operator": "Exists"}],
    }
    assert with_runtime({"runtimeClassName": "plain"}, KNOWN) == {
        "runtimeClassName": "plain",
        "overhead": {},
    }


def test_what_admission_has_done_is_not_done_again() -> None:
    done = {"runtimeClassName": "kata", "overhead": {"cpu": "1"}}
    assert with_runtime(done, KNOWN) is done
    unknown = {"runtimeClassName": "other"}
    assert with_runtime(unknown, KNOWN) is unknown
    assert not names_runtime({"containers": []})


def test_daemons_take_their_limits_and_the_overhead_of_their_runtime() -> None:
    raw = daemonset(runtimeClassName="kata")
    assert wants_runtimes([raw])
    assert not wants_runtimes([daemonset()])
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
