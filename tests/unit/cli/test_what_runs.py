"""What `plan` says of pods that run, of workloads without pods, and of fields that do not exist."""

import copy
from pathlib import Path

import pytest
from kubernetes.client import models

from functions.cli.plan.reading.unknown_fields import FIELDS
from functions.cli.plan.reading.workloads import WORKLOADS
from tests.unit.cli.running import PROVISIONER, deployment, pod, run, written

MODELS = {
    "Pod": "V1PodSpec",
    "PodTemplate": "V1PodTemplateSpec",
    "Resources": "V1ResourceRequirements",
    **{kind: f"V1{kind}Spec" for kind in ("DaemonSet", *WORKLOADS)},
    **{kind: f"V1{kind}" for kind in ("Container", "Toleration", "TopologySpreadConstraint")},
}
ZONES = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def running(number: int, template_hash: str = "96ddabef71") -> dict[str, object]:
    made = pod(f"web-{number}", nodeName="n1")
    made["metadata"] = {
        "name": f"web-{template_hash}-{number}",
        "labels": {"app": "web", "pod-template-hash": template_hash},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{template_hash}",
             "uid": "u", "controller": True}
        ],
    }  # fmt: skip
    return made


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"node.kubernetes.io/instance-type": "m5.2xlarge"}},
}


def test_pods_of_a_deployment_are_counted_once_without_its_replica_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [running(number) for number in range(3)]
    picture = tmp_path / "p.svg"
    name = written(tmp_path / "m.yaml", PROVISIONER, NODE, deployment(replicas=3), *pods)
    assert run("plan", "-f", name, "--svg", str(picture)) == 0
    said = capsys.readouterr()
    assert said.out.startswith("no pod waits for capacity: nothing to launch")
    assert "note: 3 pods on 1 node already" in said.err
    drawn = picture.read_text(encoding="utf-8")
    assert "3 pods on 1 node, nothing to launch" in drawn
    assert "n1" in drawn
    assert "3 × default/web" in drawn


def test_workloads_that_ask_for_no_pods_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = copy.deepcopy(deployment("once"))
    job |= {"apiVersion": "batch/v1", "kind": "Job"}
    job["spec"] = {"suspend": True, "template": job["spec"]["template"]}  # type: ignore[index]
    assert (
        run("plan", "-f", written(tmp_path / "m.yaml", PROVISIONER, deployment(replicas=0), job))
        == 0
    )
    said = capsys.readouterr().err
    assert "note: Deployment default/web asks for no pods: replicas is 0" in said
    assert "note: Job default/once is suspended" in said


def test_misspelt_field_is_refused_with_the_right_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = deployment(nodeSelecter={"a": "b"})
    assert run("plan", "-f", written(tmp_path / "m.yaml", PROVISIONER, wrong)) == 2
    said = capsys.readouterr().err
    assert "spec.template.spec.nodeSelecter" in said
    assert "unknown field; write nodeSelector" in said


@pytest.mark.parametrize(
    ("path", "field", "near"),
    [
        ("tolerations", {"efect": "NoSchedule"}, "effect"),
        ("topologySpreadConstraints", {**ZONES, "minDomain": 1}, "minDomains"),
        ("initContainers", {"name": "a", "restartpolicy": "Always"}, "restartPolicy"),
    ],
)
def test_lists_of_a_pod_are_checked_too(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    path: str,
    field: object,
    near: str,
) -> None:
    wrong = pod()
    wrong["spec"] |= {path: [field]}  # type: ignore[operator]
    assert run("plan", "-f", written(tmp_path / "m.yaml", PROVISIONER, wrong)) == 2
    said = capsys.readouterr().err
    assert f"spec.{path}[0]." in said
    assert f"write {near}" in said


def test_field_of_a_newer_release_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "-f", written(tmp_path / "m.yaml", PROVISIONER, pod(quantumLink="yes"))) == 0
    assert "spec.quantumLink: unknown field, left out" in capsys.readouterr().err


def test_explanation_comes_before_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = written(tmp_path / "m.yaml", PROVISIONER, deployment())
    assert run("plan", "-f", name, "--explain", "web-0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("default/web-0 asks for ")
    assert any(line.startswith("NODES") for line in lines[3:])


@pytest.mark.parametrize("kind", FIELDS)
def test_known_fields_are_those_of_the_python_client(kind: str) -> None:
    model = getattr(models, MODELS[kind])
    assert FIELDS[kind] == set(model.attribute_map.values())
