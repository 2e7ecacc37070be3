import json
from datetime import timedelta
from typing import Any

import pytest

from shared.aws.clusters import ClusterRegistry
from shared.aws.session import Session
from shared.model.brakes import Brakes, Ceiling
from shared.model.errors import NotAttachedError, PermanentError, UnauthorizedError
from tests.attachments import attachment
from tests.contract.aws.canned import canned
from tests.fakes.clock import FakeClock

PATH = "/dovetail/clusters"


def attach(aws: Session, name: str, /, **changes: Any) -> None:
    text = json.dumps({**attachment(name), **changes})
    aws.client("ssm").put_parameter(
        Name=f"{PATH}/{name}", Value=text, Type="String", Overwrite=True
    )


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def registry(aws: Session, clock: FakeClock, notices: list[str]) -> ClusterRegistry:
    return ClusterRegistry(aws, path=PATH, clock=clock, notice=notices.append)


def test_all_clusters_are_found_sorted_by_name(
    aws: Session, registry: ClusterRegistry, clock: FakeClock
) -> None:
    assert registry.all() == ()
    names = [f"c{n:02}" for n in range(12)]  # more than a page
    for name in reversed(names):
        attach(aws, name)
    other = ClusterRegistry(aws, path=PATH, clock=FakeClock())
    assert [cluster_attachment.name for cluster_attachment in other.all()] == names
    clock.advance(timedelta(seconds=5))
    assert registry.one("c03").instance_profile == "c03-nodes"


def test_what_was_found_is_remembered_for_a_minute(
    aws: Session, registry: ClusterRegistry, clock: FakeClock
) -> None:
    attach(aws, "one")
    assert registry.one("one").instance_profile == "one-nodes"
    assert len(registry.all()) == 1
    attach(aws, "one", instance_profile="new")
    attach(aws, "two")
    clock.advance(timedelta(seconds=59))
    assert registry.one("one").instance_profile == "one-nodes"
    assert len(registry.all()) == 1
    clock.advance(timedelta(seconds=1))
    assert registry.one("one").instance_profile == "new"
    assert len(registry.all()) == 2


def test_a_cluster_that_is_not_attached_is_not_found_and_asked_for_again(
    aws: Session, registry: ClusterRegistry, clock: FakeClock
) -> None:
    with pytest.raises(NotAttachedError, match="deploy its stack"):
        registry.one("one")
    attach(aws, "one")
    clock.advance(timedelta(seconds=5))
    assert registry.one("one").name == "one"


def test_any_number_of_unknown_names_costs_one_call_in_five_seconds(
    aws: Session, registry: ClusterRegistry, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(aws, "one")
    calls: list[str] = []
    client = aws.client("ssm")
    for name in ("get_parameter", "get_parameters_by_path"):
        method = getattr(client, name)

        def counted(_method: Any = method, **request: Any) -> Any:
            calls.append(next(iter(request.values())))
            return _method(**request)

        monkeypatch.setattr(client, name, counted)
    for number in range(50):
        with pytest.raises(NotAttachedError):
            registry.one(f"forged-{number}")
    assert calls == [PATH]
    clock.advance(timedelta(seconds=5))
    with pytest.raises(NotAttachedError):
        registry.brakes("forged-1")
    assert calls == [PATH, PATH]


def test_an_attachment_that_cannot_be_read_does_not_stop_the_others(
    aws: Session, registry: ClusterRegistry, notices: list[str]
) -> None:
    attach(aws, "good")
    attach(aws, "bad", launch_role="nonsense")
    attach(aws, "liar", name="good")
    assert [cluster_attachment.name for cluster_attachment in registry.all()] == ["good"]
    assert registry.names() == ("bad", "good", "liar")
    assert len(notices) == 2
    assert any("/dovetail/clusters/bad: launch_role" in notice for notice in notices)
    with pytest.raises(PermanentError, match=r"launch_role.*; deploy the cluster's stack"):
        registry.one("bad")
    with pytest.raises(PermanentError, match="another cluster's"):
        registry.one("liar")


def test_lacking_permission_is_reported(aws: Session, registry: ClusterRegistry) -> None:
    with (
        canned(aws, "ssm", "GetParametersByPath", (400, "AccessDeniedException")),
        pytest.raises(UnauthorizedError),
    ):
        registry.all()


def brake(aws: Session, text: str) -> None:
    aws.client("ssm").put_parameter(
        Name=f"{PATH}/one/brakes", Value=text, Type="String", Overwrite=True
    )


def test_the_stricter_of_attachment_and_parameter_brakes(
    aws: Session, registry: ClusterRegistry, clock: FakeClock, notices: list[str]
) -> None:
    attach(aws, "one", brakes={"max_nodes": 5})
    assert registry.brakes("one") == Brakes(ceiling=Ceiling(max_nodes=5))
    brake(aws, json.dumps({"paused": True, "max_nodes": 9, "max_price_per_hour": 12.5}))
    clock.advance(timedelta(seconds=15))
    assert registry.brakes("one") == Brakes(
        paused=True, ceiling=Ceiling(max_nodes=5, max_price_micros_per_hour=12_500_000)
    )
    assert [cluster_attachment.name for cluster_attachment in registry.all()] == ["one"]
    assert notices == []


@pytest.mark.parametrize("text", ["pause", '{"pausd": true}', '{"max_nodes": -1}'])
def test_a_parameter_that_cannot_be_read_pauses_the_cluster(
    aws: Session, registry: ClusterRegistry, notices: list[str], text: str
) -> None:
    attach(aws, "one")
    brake(aws, text)
    assert registry.brakes("one").paused
    assert notices[0].startswith(f"{PATH}/one/brakes: ")
    assert notices[0].endswith("the cluster is paused")
