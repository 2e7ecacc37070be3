"""What EC2 refused to one Provisioner, and when to retry: pure.

EC2 refuses a request for its content or for its caller: a profile that does not exist, a right that
is missing. A retry fails until the cause is fixed, so the Provisioner backs off: Dovetail retries
after 1, 2, 5 and then every 10 minutes. Another Provisioner, another subnet or security group makes
the record void.

EC2 also returns some of these codes for an instance profile, a role or a launch template that was
created just now. No error tells the two apart, so Dovetail retries such a request within seconds in
the first two minutes; afterwards the refusal counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from shared.model.ec2.fleet_errors import described, may_be_young
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetError

STEPS: Final = tuple(timedelta(minutes=n) for n in (1, 2, 5, 10))
# How long EC2 may not know what was created, and after how long it is asked for the first time.
# Source: https://github.com/hashicorp/terraform/issues/15341 (2017-12, two minutes).
YOUNG: Final = timedelta(minutes=2)
_FIRST: Final = timedelta(seconds=5)
# An instance type that EC2 does not support in a zone will not be supported in a minute.
UNSUPPORTED: Final = timedelta(minutes=30)
# How the StateReason of a machine begins that died of what it was launched with.
_DIED: Final = "Client."
# A record is kept for so long after it was last changed.
KEPT: Final = timedelta(hours=6)
# Offerings are forgotten so long after they may be asked for again.
_REMEMBERED: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """What EC2 refused to one Provisioner.

    Attributes:
        shape: Fingerprint of the Provisioner and what the attachment adds to it.
        site: Fingerprint of its subnets and security groups.
        error: The last refusal of everything, None when there is none.
        since: When it was refused first, with a code that may mean something created just now.
        strikes: How many refusals of everything there were in a row, but for such ones.
        until: When the last refusal is over; None when there is none.
        stopped: Whether EC2 is not asked for anything until then.
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
    def by_machine(self) -> bool:
        """Whether machines were launched and died: another launch is no proof of success."""
        return self.error is not None and self.error.code.startswith(_DIED)

    def blocked(self, now: datetime) -> bool:
        """Return whether EC2 is not to be asked for this Provisioner now."""
        return self.stopped and self.until is not None and now < self.until

    def left_out(self, now: datetime) -> frozenset[OfferingKey]:
        """Return the offerings that are not to be asked for now."""
        return frozenset(
            offering_key for offering_key, until in self.options.items() if now < until
        )

    def as_of(self, shape: str, site: str) -> "Refusals":
        """Return what is known of a Provisioner of this shape and site: nothing if it changed."""
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
        """Return the record after a launch that bought nothing and was refused as a whole.

        The first such refusal stops the Provisioner. When EC2 is asked again and refuses again,
        other offerings are asked for once before it stops for the next step: the refused types may
        be all that is wrong. A Provisioner that has worked as it is loses the refused offerings
        only, unless quite other ones are refused next: one pod that asks for types EC2 refuses
        must not stop the others.

        Args:
            worked: Whether there are nodes that EC2 launched for the Provisioner as it is.
        """
        suspects = self.suspects | offerings
        seen = not self.suspects or self.suspects & offerings
        died = error.code.startswith(_DIED)
        if worked and not self.strikes and seen and not died:
            return replace(self.with_options(offerings, now + STEPS[-1]), suspects=suspects)
        known = replace(self, error=error, suspects=suspects)
        if self.until is not None and now < self.until:
            return replace(known, stopped=True)
        since = self.since or now
        if may_be_young(error.code) and not self.strikes and now < since + YOUNG:
            again = min(now + max(_FIRST, now - since), since + YOUNG)
            return replace(known, since=since, until=again, stopped=True)
        until = now + STEPS[min(self.strikes, len(STEPS) - 1)]
        known = replace(known, strikes=self.strikes + 1, until=until)
        if died or not self.strikes:
            return replace(known, stopped=True)
        return replace(known.with_options(offerings, until), stopped=False)

    def after_success(self, now: datetime, *, started: bool) -> "Refusals":
        """Return the record after EC2 gave a machine.

        Args:
            started: Whether the machine is known to run; a launch alone clears nothing where
                machines died after their launch.
        """
        if self.by_machine and not started:
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
        """Return why EC2 is not asked, for people; empty when it may be."""
        if self.error is None or self.until is None:
            return ""
        again = f"asked again after {self.until:%H:%M:%S} UTC"
        if not self.strikes:
            again = (
                "asked again within seconds, as EC2 may not know a new instance profile, role or "
                "launch template yet"
            )
        return f"EC2 refuses its launches: {described(self.error)}; {again}"
