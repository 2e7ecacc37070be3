"""The state that the embedded EC2 has beside the emulator's own."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from moto.ec2.models import ec2_backends

from infra.local.aws.ec2.agenda import Agenda
from infra.local.aws.ec2.capacity import Pools
from infra.local.aws.ec2.faults import Faults
from infra.local.aws.ec2.price_book import PriceBook
from infra.local.aws.ec2.throttling import Throttles

RUNNING_DELAY_SECONDS: Final = 1.5
TERMINATED_DELAY_SECONDS: Final = 1.0

Emit = Callable[..., Any]


@dataclass(slots=True, kw_only=True)
class Settings:
    """What control verbs change; `Settings()` is how a world begins.

    Attributes:
        running_seconds: pending to running.
        terminated_seconds: shutting-down to terminated.
        unseen_seconds: age below which an instance is missing from DescribeInstances.
    """

    running_seconds: float = RUNNING_DELAY_SECONDS
    terminated_seconds: float = TERMINATED_DELAY_SECONDS
    unseen_seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class World:
    """Capacity, prices, clocks and answers given so far, for one process.

    Events leave through `outbox`, a thread of their own: whoever hears one may call EC2 at once,
    and must find no lock held and no clock stopped.
    `lock` covers everything that changes: the emulator's own lists are not made for threads.
    """

    region: str
    account: str
    book: PriceBook
    agenda: Agenda
    outbox: Agenda
    throttles: Throttles
    emit: Emit
    now: Callable[[], datetime]
    faults: Faults = field(default_factory=Faults)
    settings: Settings = field(default_factory=Settings)
    pools: Pools = field(default_factory=Pools)
    answers: dict[tuple[str, str, str, str], tuple[str, Any]] = field(default_factory=dict)
    launched_at: dict[str, float] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def backend(self, region: str | None = None) -> Any:
        """The emulator's EC2 of a Region."""
        return ec2_backends[self.account][region or self.region]

    def reset(self) -> None:
        """Forget everything but prices: as after a start."""
        with self.lock:
            self.agenda.clear()
            self.outbox.clear()
            self.throttles.reset()
            self.faults.reset()
            self.pools.reset()
            self.settings = Settings()
            self.answers.clear()
            self.launched_at.clear()

    def seen(self, instance: Any) -> bool:
        """Whether DescribeInstances shows the instance already."""
        started = self.launched_at.get(instance.id)
        if started is None or self.settings.unseen_seconds <= 0:
            return True
        return self.agenda.monotonic() - started >= self.settings.unseen_seconds

    def state_changed(self, instance: Any, state: str) -> None:
        """Announce a state on the default bus."""
        self.notify(
            instance,
            "EC2 Instance State-change Notification",
            {"instance-id": instance.id, "state": state},
        )

    def notify(self, instance: Any, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Announce something about an instance as EC2 does."""
        arn = f"arn:aws:ec2:{instance.region_name}:{self.account}:instance/{instance.id}"
        self.announce("aws.ec2", detail_type, detail, arn)

    def announce(self, source: str, detail_type: str, detail: Mapping[str, Any], arn: str) -> None:
        """Put an event on the default bus, in the order of asking."""
        self.outbox.soon(partial(self.emit, source, detail_type, detail, resources=(arn,)))
