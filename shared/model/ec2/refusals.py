"""What EC2 refused to one Provisioner, and when to retry; no I/O.

EC2 refuses a request for its content or for its caller: a profile that does not exist, a missing
permission. A retry fails until the cause is fixed, so the Provisioner backs off: Dovetail retries
after 1, 2, 5 and then every 10 minutes. A change of the Provisioner, its subnets or its security
groups makes the record void.

EC2 also returns some of these codes for an instance profile, a role or a launch template that was
created just now. No error tells the two apart, so Dovetail retries such a request within seconds in
the first two minutes; afterwards the refusal counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from shared.model.ec2.fleet_errors import describe_error, may_be_not_yet_visible
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetError

RETRY_STEPS: Final = tuple(timedelta(minutes=n) for n in (1, 2, 5, 10))
# How long a created resource may not be visible in EC2, and the delay of the first retry.
# Source: https://github.com/hashicorp/terraform/issues/15341 (2017-12, two minutes).
VISIBLE_AFTER: Final = timedelta(minutes=2)
_FIRST: Final = timedelta(seconds=5)
# An instance type that EC2 does not support in a zone will not be supported in a minute.
UNSUPPORTED: Final = timedelta(minutes=30)
# Prefix of StateReason codes of instances that were terminated because of their launch
# configuration.
_DIED: Final = "Client."
# A record is kept for so long after it was last changed.
KEPT: Final = timedelta(hours=6)
# Offerings are dropped from the record this long after they may be requested again.
_REMEMBERED: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """What EC2 refused to one Provisioner.

    Attributes:
        shape: Fingerprint of the Provisioner and what the attachment adds to it.
        site: Fingerprint of its subnets and security groups.
        error: The last refusal of a whole launch, None when there is none.
        since: When a code that may mean a resource created just now was first returned.
        strikes: Consecutive refusals of whole launches, without those that `since` is about.
        until: When the backoff of the last refusal ends; None when there is none.
        stopped: Whether no launch is tried until then.
        suspects: Offerings refused since EC2 last launched something.
        options: Offerings that are left out, and until when each is.
    """

    provisioner: str
    shape: str = ""
    site: str = ""
    error: FleetError | None = None
    since: datetime | None = None
    strikes: int = 0
    until: datetime | None = None
    stopped: bool = False
    suspects: frozenset[OfferingKey] = frozenset()
    options: Mapping[OfferingKey, datetime] = field(default_factory=dict, hash=False)

    @property
    def by_lost_instance(self) -> bool:
        """Whether instances were launched and lost: another launch is no proof of success."""
        return self.error is not None and self.error.code.startswith(_DIED)

    def blocked(self, now: datetime) -> bool:
        """Return whether no launch may be tried for this Provisioner now."""
        return self.stopped and self.until is not None and now < self.until

    def left_out(self, now: datetime) -> frozenset[OfferingKey]:
        """Return the offerings that may not be requested now."""
        return frozenset(
            offering_key for offering_key, until in self.options.items() if now < until
        )

    def as_of(self, shape: str, site: str) -> "Refusals":
        """Return the record if `shape` and `site` are unchanged, else an empty one."""
        if (self.shape, self.site) == (shape, site):
            return self
        return Refusals(provisioner=self.provisioner, shape=shape, site=site)

    def with_options(self, offerings: Iterable[OfferingKey], until: datetime) -> "Refusals":
        """Return the record with these offerings left out until then."""
        return replace(self, options={**self.options, **dict.fromkeys(offerings, until)})

    def after_refusal(
        self,
        error: FleetError,
        offerings: frozenset[OfferingKey],
        now: datetime,
        *,
        worked: bool = False,
    ) -> "Refusals":
        """Return the record after a launch that was refused as a whole.

        The first such refusal stops the Provisioner. When EC2 refuses the retry too, other
        offerings are requested once before it stops for the next step: only the refused types may
        be wrong. A Provisioner that has worked in its current form loses only the refused
        offerings, unless entirely different offerings are refused next: one pod that needs types
        EC2 refuses must not stop the others.

        Args:
            worked: Whether there are nodes that EC2 launched for the Provisioner in its current
                form.
        """
        suspects = self.suspects | offerings
        seen = not self.suspects or self.suspects & offerings
        died = error.code.startswith(_DIED)
        if worked and not self.strikes and seen and not died:
            return replace(self.with_options(offerings, now + RETRY_STEPS[-1]), suspects=suspects)
        known = replace(self, error=error, suspects=suspects)
        if self.until is not None and now < self.until:
            return replace(known, stopped=True)
        since = self.since or now
        if may_be_not_yet_visible(error.code) and not self.strikes and now < since + VISIBLE_AFTER:
            again = min(now + max(_FIRST, now - since), since + VISIBLE_AFTER)
            return replace(known, since=since, until=again, stopped=True)
        until = now + RETRY_STEPS[min(self.strikes, len(RETRY_STEPS) - 1)]
        known = replace(known, strikes=self.strikes + 1, until=until)
        if died or not self.strikes:
            return replace(known, stopped=True)
        return replace(known.with_options(offerings, until), stopped=False)

    def after_success(self, now: datetime, *, started: bool) -> "Refusals":
        """Return the record after EC2 launched an instance.

        Args:
            started: Whether the instance is known to run; a launch alone clears nothing where
                instances were lost after their launch.
        """
        if self.by_lost_instance and not started:
            return self
        options = {
            offering_key: at for offering_key, at in self.options.items() if now < at + _REMEMBERED
        }
        return Refusals(
            provisioner=self.provisioner,
            shape=self.shape,
            site=self.site,
            options=options,
        )

    def reason(self) -> str:
        """Return why no launch is tried, for people; empty when it may be."""
        if self.error is None or self.until is None:
            return ""
        again = f"asked again after {self.until:%H:%M:%S} UTC"
        if not self.strikes:
            again = (
                "asked again within seconds, as EC2 may not know a new instance profile, role or "
                "launch template yet"
            )
        return f"EC2 refuses its launches: {describe_error(self.error)}; {again}"
