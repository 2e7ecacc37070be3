"""Instances of other autoscalers boot, and one that cannot does not keep others from it."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.nodes import HollowNodes
from tests.real.user_data import Instance, boot_of
from tests.simulation.schedule.seeded_random import between
from tests.weeks.kubelets import BOOT_SECONDS
from tests.whole.booting import DrawnNodes

CLUSTER = {
    "name": "blue",
    "apiServerEndpoint": "https://127.0.0.1:1",
    "certificateAuthority": "Y2E=",
    "cidr": "172.20.0.0/16",
}


def user_data(flag: str) -> bytes:
    spec = {"cluster": CLUSTER, "kubelet": {"flags": [flag]}}
    document = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\n'
    kind = "Content-Type: application/node.eks.aws\n\n"
    return f"{head}{kind}{yaml.safe_dump(document)}\n--B--\n".encode()


def test_flags_lose_the_quotation_marks_that_systemd_takes_away() -> None:
    instance = Instance(id="i-0", zone="us-east-1a", dns_name="node-0", cores=2, pods=29)
    boot = boot_of(user_data('--node-labels="a=b,c=d" --v=2'), instance)
    assert boot.flags[-2:] == ("--node-labels=a=b,c=d", "--v=2")


class OneInstance:
    """A world with one running instance of a type."""

    cluster = None

    def __init__(self, instance_type: str) -> None:
        self.found = {
            "InstanceId": "i-0",
            "InstanceType": instance_type,
            "Placement": {"AvailabilityZone": "us-east-1a"},
            "PrivateDnsName": "node-0",
        }

    def client(self, _: str) -> Any:
        return self

    def describe_instance_attribute(self, **_: str) -> Any:
        return {"UserData": {"Value": user_data("--v=2").decode()}}


@pytest.fixture(autouse=True)
def _temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nodes that are never entered leave their folder behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_type_that_the_catalogue_lacks_has_no_kubelet(tmp_path: Path) -> None:
    world: Any = OneInstance("m99.medium")
    nodes = HollowNodes(tmp_path / "program", world, boot_seconds=0, logs=tmp_path)
    assert nodes._prepare(world.found) is None
    assert nodes.problems == ["i-0 has no kubelet: KeyError('m99.medium')"]


def test_an_instance_boots_as_long_as_in_virtual_time(tmp_path: Path) -> None:
    world: Any = OneInstance("m5.large")
    nodes = DrawnNodes(tmp_path / "program", world, seed=7, logs=tmp_path)
    nodes.begun = 1_000.0
    launched = datetime.fromtimestamp(1_000 + 3 * 60 + 20, UTC)
    joins = between(*BOOT_SECONDS, 7, "boot", "m5.large", "us-east-1a", 3)
    assert nodes.boots_in({**world.found, "LaunchTime": launched}) == joins - 5
