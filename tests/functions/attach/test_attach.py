"""`dovetail attach` against the embedded API server; options that both commands have."""

import io
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from functions.cli.attach.manifests import FORWARDER_KEY, NAMESPACE, installation_manifests
from functions.cli.attach.objects import ObjectKey
from functions.cli.attach.runtime import ConnectionOptions, cluster_manifests, installation_runtime
from functions.cli.attach.steps import Action, attach_steps
from tests.functions.attach.cluster import (
    DEFINITIONS,
    DEPLOYMENT,
    IMAGE,
    IN_DOVETAIL,
    ControlPlane,
    There,
)

Captured = pytest.CaptureFixture[str]


def test_attaching_shows_applies_and_ends_with_the_heartbeat(
    there: There, capsys: Captured
) -> None:
    there.clock.happens = [lambda: None, there.roll_out, lambda: None, there.heartbeat]

    assert there.run("attach", "--yes") == 0

    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"attach prod at {there.api.url}; forwarder {IMAGE}"
    assert told[1] == "  create    CustomResourceDefinition awsnodetemplates.karpenter.k8s.aws"
    assert "created Deployment dovetail/dovetail-forwarder" in told
    assert told[-4:] == [
        "forwarder: its pod starts",
        "forwarder: its pod is ready; no heartbeat of it yet",
        "forwarder: heartbeat of 00:00:08 UTC has come through",
        "prod is attached",
    ]
    spec = there.api.get(DEPLOYMENT)["spec"]["template"]["spec"]
    assert spec["containers"][0]["image"] == IMAGE
    named = there.api.get(f"{IN_DOVETAIL}/configmaps/dovetail-forwarder")["data"]
    assert named == {"DOVETAIL_CLUSTER": "prod"}
    assert len(there.names(DEFINITIONS)) == 4


def test_attaching_again_changes_nothing_and_a_difference_is_set_right(
    there: There, capsys: Captured
) -> None:
    assert there.run("attach", "--yes", "--wait", "0") == 0
    before = there.api.get(DEPLOYMENT)["metadata"]["resourceVersion"]
    capsys.readouterr()

    assert there.run("attach", "--wait", "0") == 0
    count = len(cluster_manifests()) - 2 + 1  # two Kustomizations, one ConfigMap
    assert capsys.readouterr().out.splitlines()[1:] == [f"  {count} unchanged"]
    assert there.api.get(DEPLOYMENT)["metadata"]["resourceVersion"] == before

    there.merge(f"{IN_DOVETAIL}/configmaps/dovetail-forwarder", {"data": {"DOVETAIL_CLUSTER": "x"}})
    assert there.run("attach", "--yes", "--wait", "0") == 0
    told = capsys.readouterr().out
    assert "  change    ConfigMap dovetail/dovetail-forwarder: data.DOVETAIL_CLUSTER\n" in told
    assert f"  {count - 1} unchanged\n" in told
    assert "changed ConfigMap dovetail/dovetail-forwarder\n" in told


@pytest.mark.parametrize("command", ["attach", "detach"])
def test_dry_run_and_a_missing_yes_write_nothing(
    there: There, capsys: Captured, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    if command == "detach":
        there.run("attach", "--yes", "--wait", "0")
    before = there.names("/api/v1/namespaces")
    assert there.run(command, "--dry-run") == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert there.run(command) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"dovetail {command}: no terminal to ask at: give --yes",
        f"dovetail {command}: nothing is changed",
    ]
    assert there.names("/api/v1/namespaces") == before


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("no\n", 1), ("", 1)])
def test_it_goes_on_only_when_the_user_says_yes(
    there: There, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert there.run("attach", "--wait", "0") == code
    assert (NAMESPACE in there.names("/api/v1/namespaces")) is (code == 0)


def test_definitions_of_another_release_are_left_and_then_none_is_applied(
    there: There, capsys: Captured
) -> None:
    (other,) = (
        dict(document)
        for document in cluster_manifests()
        if ObjectKey.of(document).name == "nodepools.karpenter.sh"
    )
    other["metadata"] = {"name": "nodepools.karpenter.sh"}
    there.make(DEFINITIONS, other)

    assert there.run("attach", "--yes", "--wait", "0") == 0

    told = capsys.readouterr().out
    line = "  leave     CustomResourceDefinition provisioners.karpenter.sh: "
    assert f"{line}nodepools.karpenter.sh belongs to another release\n" in told
    assert there.names(DEFINITIONS) == ["nodepools.karpenter.sh"]
    assert there.run("detach", "--yes") == 0
    assert there.names(DEFINITIONS) == ["nodepools.karpenter.sh"]


def test_a_heartbeat_from_before_the_pod_or_of_long_ago_does_not_count(
    there: There, capsys: Captured
) -> None:
    there.run("attach", "--yes", "--wait", "0")
    there.heartbeat()
    there.clock.advance(timedelta(seconds=30))
    there.roll_out()

    assert there.run("attach", "--wait", "6") == 1
    told = capsys.readouterr().err.splitlines()
    assert told == [
        ("dovetail attach: no heartbeat within 6 s: its pod is ready; no heartbeat of it yet"),
        "  look at: kubectl -n dovetail logs deployment/dovetail-forwarder --tail=50",
        "  look at: aws eks describe-addon --cluster-name prod --addon-name eks-pod-identity-agent",
        "  look at: dovetail doctor --prerequisites --cluster prod",
        "  what it can be: docs/operations/forwarder-silent.md",
    ]
    there.heartbeat()
    assert there.run("attach", "--wait", "6") == 0
    there.clock.advance(timedelta(minutes=12))
    assert there.run("attach", "--wait", "6") == 1


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes\nare available",
                    }
                ]
            },
            "pod dovetail-forwarder-a: Unschedulable: 0/3 nodes are available",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "forwarder",
                        "image": IMAGE,
                        "imageID": "",
                        "ready": False,
                        "restartCount": 0,
                        "state": {"waiting": {"reason": "ImagePullBackOff"}},
                    }
                ]
            },
            "pod dovetail-forwarder-a: ImagePullBackOff",
        ),
    ],
)
def test_why_the_forwarder_does_not_start_is_said(
    there: There, capsys: Captured, status: Mapping[str, Any], why: str
) -> None:
    there.run("attach", "--yes", "--wait", "0")
    there.start_pod(status)
    assert there.run("attach", "--wait", "4") == 1
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == [
        f"dovetail attach: no heartbeat within 4 s: {why}",
        "  look at: kubectl -n dovetail describe pods",
    ]


def test_a_pod_that_may_not_be_made_is_said(there: There, capsys: Captured) -> None:
    there.run("attach", "--yes", "--wait", "0")
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "no",
    }
    there.merge(f"{DEPLOYMENT}/status", {"status": {"conditions": [failure]}})
    assert there.run("attach", "--wait", "1") == 1
    assert "1 s: no pod: FailedCreate: no\n" in capsys.readouterr().err


def test_objects_of_a_helm_release_are_left_to_helm(there: There, capsys: Captured) -> None:
    there.run("attach", "--yes", "--wait", "0")
    note = {"meta.helm.sh/release-name": "dovetail"}
    there.merge(DEPLOYMENT, {"metadata": {"annotations": note}})
    for command in ("attach", "detach"):
        assert there.run(command, "--yes") == 2
        assert capsys.readouterr().err == (
            f"dovetail {command}: Deployment dovetail/dovetail-forwarder: belongs to the Helm "
            "release dovetail: use helm upgrade and helm uninstall, or uninstall it first\n"
        )


def test_the_image_is_the_one_given_or_the_one_that_is_deployed(
    there: There, capsys: Captured
) -> None:
    assert there.run("attach", "--yes", "--wait", "0", image="Own") == 2
    assert capsys.readouterr().err == (
        "dovetail attach: --image: 'Own': give <registry>/dovetail/forwarder:<tag>\n"
    )
    assert there.run("attach", "--yes", "--wait", "0", image="own/forwarder:1") == 0
    assert image_in(there) == "own/forwarder:1"
    there.control_plane = ControlPlane(image="deployed/forwarder:2")
    assert there.run("attach", "--yes", "--wait", "0", image="") == 0
    assert image_in(there) == "deployed/forwarder:2"
    assert there.run("attach", "--yes", "--wait", "0", image="own/forwarder:3") == 0
    assert image_in(there) == "own/forwarder:3"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--wait", "-1"], "dovetail attach: --wait: -1: give whole seconds, 0 for none\n"),
        (
            [],
            (
                "dovetail attach: CLUSTER: 'prod': no stack attaches it: npx cdk deploy --all -c "
                "clusters=prod -c max_price_per_hour=prod:<dollars>\n"
            ),
        ),
        (["--context", "none"], "no context none; there are: "),
    ],
)
def test_bad_input_is_told_in_one_line(
    there: There, capsys: Captured, arguments: list[str], told: str
) -> None:
    if not arguments:
        there.control_plane = ControlPlane(attached=False)
    assert there.run("attach", *arguments) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_a_name_that_no_cluster_can_have_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(Exception, match="CLUSTER: 'a/b': give the name of an EKS cluster"):
        installation_runtime(ConnectionOptions(cluster="a/b"), needs_control_plane=True)


def test_an_installation_by_kubectl_is_taken_over(there: There) -> None:
    """What `kubectl apply -k infra/cluster` made is changed only where it differs."""
    reached = ConnectionOptions(cluster="prod", kubeconfig=there.kubeconfig, any_address=True)
    objects = there.runtime(reached).objects
    for document in installation_manifests(
        cluster_manifests(), cluster="prod", image="old/forwarder:1"
    ):
        objects.apply(document)
    wanted = installation_manifests(cluster_manifests(), cluster="prod", image="new/forwarder:2")
    (changed,) = (
        step for step in attach_steps(objects, wanted) if step.action is not Action.UNCHANGED
    )
    assert changed.key == FORWARDER_KEY
    assert changed.text == "spec.template.spec.containers[0].image"


def image_in(there: There) -> str:
    """Return the image that the forwarder's Deployment names."""
    spec = there.api.get(DEPLOYMENT)["spec"]["template"]["spec"]
    return str(spec["containers"][0]["image"])
