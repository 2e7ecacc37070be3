"""The AWS cloud controller manager, beside a world whose own is not simulated."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from infra.local.demo.world import CLUSTER, REGION, World
from tests.real.cluster import KUBECONFIGS, Cluster, free_port

_NAME: Final = "cloud"


@contextmanager
def cloud_controllers(
    program: Path, cluster: Cluster, problems: list[str], world: World
) -> Iterator[None]:
    """Run its node controllers against the API server and the embedded EC2.

    Args:
        problems: Gets a line if they end by themselves.
    """
    ec2 = world.client("ec2")
    subnet = ec2.describe_subnets()["Subnets"][0]
    # With these three it takes the account for a foreign one and asks no metadata service.
    # Source: pkg/providers/v1/aws.go of https://github.com/kubernetes/cloud-provider-aws (v1.34.3)
    settings = {
        "Region": REGION,
        "VPC": subnet["VpcId"],
        "SubnetID": subnet["SubnetId"],
        "KubernetesClusterID": CLUSTER,
    }
    file = cluster.folder / "cloud.conf"
    lines = ["[Global]", *(f"{key} = {value}" for key, value in settings.items())]
    file.write_text("\n".join(lines) + "\n", encoding="ascii")
    config = cluster.kubeconfig(_NAME)
    cluster.spawn(
        _NAME,
        [
            str(program),
            "--cloud-provider=aws",
            f"--cloud-config={file}",
            f"--cluster-name={CLUSTER}",
            *(f"--{kind}kubeconfig={config}" for kind in KUBECONFIGS),
            "--authentication-skip-lookup=true",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            "--leader-elect=false",
            "--controllers=cloud-node-controller,cloud-node-lifecycle-controller",
            "--allocate-node-cidrs=false",
            "--configure-cloud-routes=false",
            "--v=2",
        ],
        environment=world.aws_environment,
    )
    try:
        yield
    finally:
        if not cluster.alive(_NAME):
            problems.append("the cloud controller manager ended by itself")
        cluster.stop(_NAME)
