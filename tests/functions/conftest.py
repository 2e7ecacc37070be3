"""Handlers with fakes behind them: only what builds the object graph is replaced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext

from shared.model.errors import NotAttachedError, UnavailableError
from shared.model.messages.message import Message
from shared.ports import ClusterPorts
from shared.provisioning.cluster_wakes import ClusterWake, InvalidRecord
from shared.provisioning.provision import Provisioning
from shared.runtime.logs_and_metrics import metrics
from tests.unit.worlds import World


@dataclass(frozen=True)
class Context:
    """What Lambda passes beside the event."""

    function_name: str = "test"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:test"
    aws_request_id: str = "request-1"
    left: timedelta = timedelta(minutes=10)

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left.total_seconds() * 1000)


class Runtime:
    """A double of any runtime: one service per cluster, made of a world in memory."""

    def __init__(self, make: Callable[[ClusterPorts], Any], **worlds: World) -> None:
        self._make = make
        self.worlds = worlds
        self.woken: list[str] = []
        self.woken_later: list[tuple[str, timedelta | None]] = []
        self.dead: list[tuple[str, str]] = []
        self.heartbeats: list[tuple[str, datetime]] = []
        self.swept_alone: list[str] = []
        self.sends = True
        self.floods = False

    def service(self, cluster: str) -> Any:
        return self._make(self.world(cluster).ports)

    def world(self, cluster: str) -> World:
        if cluster not in self.worlds:
            raise NotAttachedError(f"cluster {cluster!r} is not attached")
        return self.worlds[cluster]

    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(self.worlds))

    def cluster_of(self, instance_id: str) -> str | None:
        return next((n for n, w in self.worlds.items() if w.ledger.cluster_of(instance_id)), None)

    def admits(self, message: Message) -> bool:
        self.world(message.cluster)
        return not self.floods

    def record_heartbeat(self, cluster: str, at: datetime) -> None:
        self.heartbeats.append((cluster, at))

    def deadline(self, context: Context) -> datetime:
        (world, *_) = self.worlds.values()
        return world.clock.now() + context.left

    def invoke_provision(self, wake: ClusterWake) -> None:
        self.world(wake.cluster).outbox.invoke_provision(
            wake.cluster, evaluate=wake.evaluate, changed=wake.provisioners_changed
        )
        self.woken.append(wake.cluster)

    def invoke_sweep(self, cluster: str) -> None:
        self.world(cluster).outbox.invoke_sweep(cluster)
        self.swept_alone.append(cluster)

    def wake_later(self, cluster: str, delay: timedelta | None, *, evaluate: bool = False) -> bool:
        self.woken_later.append((f"{cluster}, look" if evaluate else cluster, delay))
        return self.sends

    def send_to_dead_letters(self, records: Sequence[InvalidRecord], _: LambdaContext) -> list[str]:
        self.dead += [(record.text, record.reason) for record in records]
        return []


class ProvisionRuntime(Runtime):
    """A double of provision's runtime."""

    def __init__(self, **worlds: World) -> None:
        super().__init__(lambda _: None, **worlds)

    def service(self, cluster: str) -> Provisioning:
        return self.world(cluster).provisioning()


UNREACHABLE = UnavailableError("the API server does not answer")


@pytest.fixture(autouse=True)
def no_metrics_of_other_tests() -> None:
    """The metrics of a process are kept until a handler ends, and tests also count without one."""
    metrics.clear_metrics()


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Records that were set aside, with the reason."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "shared.runtime.serve_events.send_dead_letter",
        lambda text, why: found.append((text, why)),
    )
    return found


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Give the handler of a function a runtime: `use("bind", runtime)`."""

    def install(function: str, runtime: Any) -> None:
        monkeypatch.setattr(f"functions.{function}.handler.load_runtime", lambda: runtime)

    return install
