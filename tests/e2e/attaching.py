"""`dovetail attach` and `dovetail detach` on a world, from the first command to the last."""

import pytest

from functions.cli.main import main
from infra.local.demo.world import CLUSTER, World
from tests.waiting import until

_PODS = "api/v1/namespaces/dovetail/pods"


def attach_and_detach(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attach the cluster, wait for the heartbeat of its forwarder, detach it; assert each step."""
    for name, value in world.aws_environment.items():
        monkeypatch.setenv(name, value)
    add_node_of_auto_mode(world)
    given = [CLUSTER, "--kubeconfig", str(world.kubeconfig), "--yes"]
    attach = ["attach", *given]
    assert main([*attach, "--wait", "0"]) == 0
    until(
        lambda: any(
            pod.get("status", {}).get("phase") == "Running" for pod in world.cluster.items(_PODS)
        ),
        "a pod of the forwarder runs",
        120,
    )
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
