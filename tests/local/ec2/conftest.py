"""One server with the embedded EC2 in it; every test starts from an empty account."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import AmiBackend
from moto.eks.models import eks_backends
from moto.iam.models import iam_backends
from moto.server import ThreadedMotoServer
from moto.ssm.models import ssm_backends

from infra.local.aws.control import Control
from infra.local.aws.ec2 import Installation, install
from infra.local.aws.ec2.schedule import Agenda
from tests.once import shared_service_models

REGION = "us-east-1"
CLUSTER = {"name": "blue", "endpoint": "https://127.0.0.1:6443", "ca_data": "Y2E="}


@dataclass(kw_only=True)
class Account:
    """What a test touches: verbs, clients, the clock and the events that were emitted."""

    control: Control
    installation: Installation
    url: str
    clock: list[float]
    events: list[dict[str, Any]] = field(default_factory=list)
    clients: dict[tuple[str, str], Any] = field(default_factory=dict)

    def client(self, service: str, region: str = REGION) -> Any:
        if (service, region) not in self.clients:
            self.clients[service, region] = boto3.client(
                service,
                endpoint_url=self.url,
                region_name=region,
                aws_access_key_id="test",
                aws_secret_access_key="test",
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self.clients[service, region]

    @property
    def ec2(self) -> Any:
        return self.client("ec2")

    def do(self, verb: str, **arguments: Any) -> Any:
        return self.control.call(verb, arguments)

    def pass_time(self, seconds: float) -> None:
        self.clock[0] += seconds
        self.installation.world.agenda.run_due()
        self.installation.world.outbox.run_due()

    def announced(self, instance_id: str) -> list[str]:
        """Detail types, or states, announced for one instance, oldest first."""
        self.installation.world.outbox.run_due()
        return [
            event["detail"].get("state", event["detail-type"])
            for event in self.events
            if event["detail"].get("instance-id") == instance_id
        ]


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A plain server for the whole session; stopping one takes half a second."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    with shared_service_models():
        yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture(scope="module")
def _installed(server_url: str) -> Iterator[Account]:
    clock = [1000.0]
    control = Control(url=server_url)
    installation = install(
        control,
        # No such file: the computed prices decide, whatever the embedded catalogue says.
        Path("absent.json"),
        agenda=Agenda(monotonic=lambda: clock[0], threaded=False),
    )
    account = Account(control=control, installation=installation, url=server_url, clock=clock)

    def sink(event: dict[str, Any]) -> str:
        account.events.append(event)
        return str(len(account.events))

    control.deliver_events_to(sink)
    # The emulator's own 1,300 images cost 0.1 seconds an account, and no test needs them.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AmiBackend, "_load_amis", lambda _: None)
        yield account
    for client in account.clients.values():
        client.close()
    control.stop()


@pytest.fixture
def account(_installed: Account) -> Account:
    for backends in (ec2_backends, eks_backends, iam_backends, ssm_backends):
        backends.clear()
    _installed.control.reset()
    _installed.events.clear()
    return _installed


@pytest.fixture
def cluster(account: Account) -> dict[str, Any]:
    """The ids of a seeded cluster `blue` and of a launch template `nodes` for it."""
    seeded = account.do("seed", clusters=[CLUSTER])
    ids: dict[str, Any] = seeded["clusters"]["blue"]
    folder = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023"
    ids["image_id"] = seeded["images"][f"{folder}/x86_64/standard/recommended/image_id"]
    ids["arm_image_id"] = seeded["images"][f"{folder}/arm64/standard/recommended/image_id"]
    answer = account.ec2.create_launch_template(
        LaunchTemplateName="nodes",
        TagSpecifications=[
            {"ResourceType": "launch-template", "Tags": [{"Key": "leak", "Value": "no"}]}
        ],
        LaunchTemplateData={
            "ImageId": ids["image_id"],
            "UserData": base64.b64encode(b"join blue").decode(),
            "SecurityGroupIds": [ids["security_group_id"]],
            "IamInstanceProfile": {"Name": ids["instance_profile"]},
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
            "BlockDeviceMappings": [
                {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 33, "VolumeType": "gp3"}}
            ],
            "TagSpecifications": [
                {"ResourceType": "instance", "Tags": [{"Key": "from", "Value": "template"}]},
                {"ResourceType": "volume", "Tags": [{"Key": "disk", "Value": "template"}]},
            ],
        },
    )
    ids["template_id"] = answer["LaunchTemplate"]["LaunchTemplateId"]
    return ids


Fleet = Callable[..., dict[str, Any]]


@pytest.fixture
def fleet(account: Account, cluster: dict[str, Any]) -> Fleet:
    """Send CreateFleet for the template `nodes`."""
    ec2 = account.ec2

    def create(
        overrides: Sequence[Mapping[str, Any]],
        *,
        count: int = 1,
        kind: str = "on-demand",
        **more: Any,
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "Type": "instant",
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateName": "nodes",
                        "Version": "$Latest",
                    },
                    "Overrides": list(overrides),
                }
            ],
            "TargetCapacitySpecification": {
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": kind,
            },
        }
        answer: dict[str, Any] = ec2.create_fleet(**{**request, **more})
        return answer

    return create
