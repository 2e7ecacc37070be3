"""The embedded EC2 with its own clock and threads, as `dovetail up` runs it."""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto.ec2.models import ec2_backends

from infra.local.aws.control import Control
from infra.local.aws.ec2 import install
from infra.local.aws.ec2.catalog.price_book import embedded_catalog, read_price_book


@pytest.fixture
def running(server_url: str) -> Iterator[tuple[Control, Any]]:
    """A control and a client; instances run 20 ms after their launch."""
    ec2_backends.clear()
    control = Control(url=server_url)
    settings = install(control).world.ec2.settings
    settings.running = settings.terminated = timedelta(milliseconds=20)
    client = boto3.client(
        "ec2",
        endpoint_url=server_url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    yield control, client
    client.close()
    control.stop()


def request(count: int) -> dict[str, Any]:
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "nodes"},
                "Overrides": [{"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}],
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": count,
            "DefaultTargetCapacityType": "spot",
        },
    }


def test_the_receiver_of_an_event_may_call_ec2_at_once(running: tuple[Control, Any]) -> None:
    control, client = running
    image = client.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])
    client.create_launch_template(
        LaunchTemplateName="nodes",
        LaunchTemplateData={"ImageId": image["Images"][0]["ImageId"]},
    )
    heard: queue.Queue[tuple[str, str]] = queue.Queue()

    def sink(event: dict[str, Any]) -> str:
        name = event["detail"]["instance-id"]
        found = client.describe_instances(InstanceIds=[name])["Reservations"][0]["Instances"][0]
        heard.put((event["detail"]["state"], found["State"]["Name"]))
        return "1"

    control.deliver_events_to(sink)
    [row] = client.create_fleet(**request(1))["Instances"]
    assert heard.get(timeout=60)[0] == "pending"
    assert heard.get(timeout=60) == ("running", "running")
    client.terminate_instances(InstanceIds=row["InstanceIds"])
    assert heard.get(timeout=60)[0] == "shutting-down"
    assert heard.get(timeout=60) == ("terminated", "terminated")


def test_fleets_of_many_threads_never_share_a_machine_or_a_pool(
    running: tuple[Control, Any],
) -> None:
    control, client = running
    control.deliver_events_to(lambda _: "1")
    image = client.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])
    client.create_launch_template(
        LaunchTemplateName="nodes",
        LaunchTemplateData={"ImageId": image["Images"][0]["ImageId"]},
    )
    control.call("capacity/set", {"type": "m5.large", "count": 20})
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: client.create_fleet(**request(3)), range(8)))
    names = [
        entry for answer in answers for row in answer["Instances"] for entry in row["InstanceIds"]
    ]
    assert (len(names), len(set(names))) == (20, 20)
    assert sum(bool(answer["Errors"]) for answer in answers) == 2
    found = client.describe_instances()["Reservations"]
    addresses = {instance["PrivateIpAddress"] for row in found for instance in row["Instances"]}
    assert len(addresses) == 20


def test_closing_leaves_no_thread_behind(running: tuple[Control, Any]) -> None:
    control, client = running
    control.deliver_events_to(lambda _: "1")
    client.run_instances(ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1)
    assert any(thread.name == "ec2-agenda" for thread in threading.enumerate())
    control.stop()
    assert not any(thread.name == "ec2-agenda" for thread in threading.enumerate())


def test_the_embedded_catalogue_has_prices_for_both_capacity_types() -> None:
    book = read_price_book(embedded_catalog("us-east-1"))
    assert len(book.on_demand) > 100
    name = "m5.large"
    assert book.price(name, "us-east-1a", "spot") < book.list_price(name)
    assert (name, "us-east-1a", "spot") in book.zonal
