"""The state that the embedded EC2 has beside the emulator's own."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from moto.ec2.models import ec2_backends

from infra.local.aws.ec2.catalog.price_book import PriceBook
from infra.local.aws.ec2.launching import EmulatedAccount
from infra.local.aws.ec2.schedule import Agenda
from infra.local.ec2.instances import Instance as Model
from infra.local.ec2.instances import Settings, Step
from infra.local.ec2.model import Ec2

RUNNING_DELAY: Final = timedelta(seconds=1.5)
ENDING_DELAY: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)

Emit = Callable[..., Any]


def _settings() -> Settings:
    return Settings(running=RUNNING_DELAY, terminated=ENDING_DELAY, stopped=ENDING_DELAY)


@dataclass(slots=True, kw_only=True)
class World:
    """The model of EC2 beside the emulator, its clocks and prices, for one process.

    The thread of `outbox` sends the events: the receiver of an event may call EC2 at once, so no
    lock may be held and no clock stopped at that time.
    `launched` is called when a fleet has launched instances and is not answered yet, `harmed` with
    each thing that goes wrong on purpose.
    `lock` protects everything that changes: the emulator's own lists are not thread-safe.
    """

    region: str
    account: str
    book: PriceBook
    agenda: Agenda
    outbox: Agenda
    emit: Emit
    now: Callable[[], datetime]
    changed: Callable[[Model, list[Step]], None] = lambda _model, _steps: None
    launched: Callable[[], None] = lambda: None
    harmed: Callable[[str, str], None] = lambda _kind, _struck: None
    instances: dict[str, Any] = field(default_factory=dict)
    accounts: dict[str, EmulatedAccount] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    ec2: Ec2 = field(init=False)

    def __post_init__(self) -> None:
        self.reset()

    def time(self) -> datetime:
        """Return the model's time: the clock of the agenda."""
        return _EPOCH + timedelta(seconds=self.agenda.monotonic())

    def account_of(self, backend: Any = None) -> EmulatedAccount:
        """Return the account as launches in a Region see it."""
        found = backend or self.backend()
        if found.region_name not in self.accounts:
            self.accounts[found.region_name] = EmulatedAccount(found, self.book)
        return self.accounts[found.region_name]

    def backend(self, region: str | None = None) -> Any:
        return ec2_backends[self.account][region or self.region]

    def reset(self) -> None:
        """Forget everything but prices: as after a start."""
        with self.lock:
            self.agenda.clear()
            self.outbox.clear()
            self.instances.clear()
            self.accounts.clear()
            self.ec2 = Ec2(self.time, settings=_settings(), changed=self._changed)

    def _changed(self, model: Model, steps: list[Step]) -> None:
        self.changed(model, steps)

    def seen(self, instance: Any) -> bool:
        """Return whether DescribeInstances shows the instance now."""
        model = self.ec2.instances.get(instance.id)
        return model is None or self.ec2.shows(model)

    def notify(self, instance: Any, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Put an event about an instance on the default bus, in the order of asking."""
        arn = f"arn:aws:ec2:{instance.region_name}:{self.account}:instance/{instance.id}"
        self.outbox.soon(partial(self.emit, "aws.ec2", detail_type, detail, resources=(arn,)))
