"""`dovetail attach` and `dovetail detach` on the whole embedded world."""

import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from infra.local.console import main
from infra.local.demo.world import CLUSTER, World, WorldOptions

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

_SPEED = 10
_PODS = "api/v1/namespaces/dovetail/pods"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    options = WorldOptions(speed=_SPEED, keep_logs=tmp_path)
    with World(options, Console(file=io.StringIO()).print) as running:
        yield running


def test_a_cluster_is_attached_by_the_forwarders_heartbeat_and_detached_again(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in world.aws_environment.items():
        monkeypatch.setenv(name, value)
    add_node_of_auto_mode(world)
    given = [CLUSTER, "--kubeconfig", str(world.kubeconfig), "--yes"]
    attach = ["attach", *given]
    assert main([*attach, "--wait", "0"]) == 0
    ends = time.monotonic() + 120
    while not any(
        pod.get("status", {}).get("phase") == "Running" for pod in world.cluster.items(_PODS)
    ):
        assert time.monotonic() < ends, world.cluster.items(_PODS)
        time.sleep(1)
    capsys.readouterr()

    # Nothing runs in simulated pods: the forwarder is a process beside them, started after the pod.
    world.children.stop("forwarder")
    world.start_forwarder()
    assert main([*attach, "--wait", "120"]) == 0
    told = capsys.readouterr().out
    assert " UTC has come through\n" in told
    assert told.endswith(f"{CLUSTER} is attached\n")

    assert main(["detach", *given]) == 0
    definitions = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert world.cluster.items(definitions) == []
    roles = world.cluster.items("apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert not [role for role in roles if role["metadata"]["name"].startswith("dovetail")]


def test_a_kubeconfig_of_another_cluster_is_refused(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    for name, value in world.aws_environment.items():
        monkeypatch.setenv(name, value)
    other = tmp_path / "other"
    text = world.kubeconfig.read_text(encoding="utf-8")
    other.write_text(text.replace("127.0.0.1", "127.0.0.2"), encoding="utf-8")
    assert main(["attach", CLUSTER, "--kubeconfig", str(other), "--image", "a/b:1"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(
        f"dovetail attach: kubeconfig {other}: its context reaches https://127.0"
    )
    assert told.count("\n") == 1


def add_node_of_auto_mode(world: World) -> None:
    """Let a machine run that EKS Auto Mode would have launched: the forwarder may run there."""
    ec2 = world.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    placed = {"ImageId": image, "InstanceType": "m5.large", "MinCount": 1, "MaxCount": 1}
    (machine,) = ec2.run_instances(**placed)["Instances"]
    name = machine["PrivateDnsName"]
    labels = {
        "karpenter.sh/nodepool": "system",
        "eks.amazonaws.com/compute-type": "auto",
        "kubernetes.io/arch": "amd64",
    }
    zone = machine["Placement"]["AvailabilityZone"]
    world.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": f"aws:///{zone}/{machine['InstanceId']}"},
        }
    )
