"""What EC2 refuses to a cluster's Provisioners, in notes written under the cluster's lease.

EC2 refuses a request for its content or for its caller: a profile that does not exist, a missing
permission. A retry fails until the cause is fixed, so the Provisioner backs off: Dovetail retries
after 1, 2, 5 and then every 10 minutes. A change of the Provisioner, its subnets or its security
groups makes the record void.

EC2 also returns some of these codes for an instance profile, a role or a launch template that was
created just now. No error tells the two apart, so Dovetail retries such a request within seconds in
the first two minutes; afterwards the refusal counts.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from shared.model.codec import from_plain, to_json, to_plain
from shared.model.ec2.fleet_errors import describe_error, may_be_not_yet_visible
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import FleetError
from shared.model.note import Note
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from shared.ports import ClusterPorts, Site

RETRY_STEPS: Final = tuple(timedelta(minutes=n) for n in (1, 2, 5, 10))
# How long a created resource may not be visible in EC2, and the delay of the first retry.
# Source: https://github.com/hashicorp/terraform/issues/15341 (2017-12, two minutes).
_VISIBLE_AFTER: Final = timedelta(minutes=2)
_FIRST: Final = timedelta(seconds=5)
# An instance type that EC2 does not support in a zone will not be supported in a minute.
UNSUPPORTED: Final = timedelta(minutes=30)
# Prefix of StateReason codes of instances that were terminated because of their launch
# configuration.
_DIED: Final = "Client."
# A record is kept for so long after it was last changed.
_KEPT: Final = timedelta(hours=6)
# Offerings are dropped from the record this long after they may be requested again.
_REMEMBERED: Final = timedelta(hours=1)
# Addresses are freed when pods end; DescribeSubnets is called again each minute.
_SUBNET_SPAN: Final = timedelta(minutes=3)
_PREFIX: Final = "refused"
_OF_PROVISIONER: Final = f"{_PREFIX}#"
_SUBNETS: Final = f"{_PREFIX}-subnets"
_LENGTH: Final = 16


class Refusals(Struct, frozen=True, kw_only=True):
    """What EC2 refused to one Provisioner, and when to retry.

    Attributes:
        shape: Fingerprint of the Provisioner and what the attachment adds to it.
        site: Fingerprint of its subnets and security groups.
        error: The last refusal of a whole launch, None when there is none.
        since: When a code that may mean a resource created just now was first returned.
        strikes: Consecutive refusals of whole launches, without those that `since` is about.
        until: When the backoff of the last refusal ends; None when there is none.
        stopped: Whether no launch is tried until then.
        suspects: Texts of the offerings refused since EC2 last launched something.
        options: Texts of the offerings that are left out, and until when each is.
    """

    provisioner: str
    shape: str = ""
    site: str = ""
    error: FleetError | None = None
    since: datetime | None = None
    strikes: int = 0
    until: datetime | None = None
    stopped: bool = False
    suspects: frozenset[str] = frozenset()
    options: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def by_lost_instance(self) -> bool:
        """Whether instances were launched and lost: another launch is no proof of success."""
        return self.error is not None and self.error.code.startswith(_DIED)

    def blocked(self, now: datetime) -> bool:
        """Return whether no launch may be tried for this Provisioner now."""
        return self.stopped and self.until is not None and now < self.until

    def left_out(self, now: datetime) -> frozenset[OfferingKey]:
        """Return the offerings that may not be requested now."""
        left = (text for text, until in self.options.items() if now < until)
        return frozenset(map(OfferingKey.from_text, left))

    def as_of(self, shape: str, site: str) -> "Refusals":
        """Return the record if `shape` and `site` are unchanged, else an empty one."""
        if (self.shape, self.site) == (shape, site):
            return self
        return Refusals(provisioner=self.provisioner, shape=shape, site=site)

    def with_options(self, offerings: Iterable[OfferingKey], until: datetime) -> "Refusals":
        """Return the record with these offerings left out until then."""
        more = {offering.text: until for offering in offerings}
        return replace(self, options={**self.options, **more})

    def after_refusal(
        self,
        error: FleetError,
        offerings: Collection[OfferingKey],
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
        refused = frozenset(offering.text for offering in offerings)
        suspects = self.suspects | refused
        seen = not self.suspects or self.suspects & refused
        died = error.code.startswith(_DIED)
        if worked and not self.strikes and seen and not died:
            return replace(self.with_options(offerings, now + RETRY_STEPS[-1]), suspects=suspects)
        known = replace(self, error=error, suspects=suspects)
        if self.until is not None and now < self.until:
            return replace(known, stopped=True)
        since = self.since or now
        if may_be_not_yet_visible(error.code) and not self.strikes and now < since + _VISIBLE_AFTER:
            again = min(now + max(_FIRST, now - since), since + _VISIBLE_AFTER)
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
        options = {text: until for text, until in self.options.items() if now < until + _REMEMBERED}
        return replace(self.as_of("", ""), shape=self.shape, site=self.site, options=options)

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


class KnownRefusals(Struct, frozen=True, kw_only=True):
    """What EC2 refused to one cluster, all read at the same time.

    Attributes:
        subnets: Subnets that are excluded now.
        records: Refusals by name of the Provisioner.
    """

    subnets: frozenset[str] = frozenset()
    records: Mapping[str, Refusals] = field(default_factory=dict)

    def of(self, ports: ClusterPorts, provisioner: Provisioner, site: Site) -> Refusals:
        """Return the refusals that apply to a Provisioner as it is now."""
        known = self.records.get(provisioner.name)
        if known is None:
            return Refusals(provisioner=provisioner.name)
        return known.as_of(_shape(ports, provisioner), _site(site))

    def reason_for(self, ports: ClusterPorts, provisioner: Provisioner) -> str:
        """Return why EC2 refused a Provisioner as it is now, empty if it did not."""
        known = self.records.get(provisioner.name)
        if known is None or known.shape != _shape(ports, provisioner):
            return ""
        return known.reason()


def read_refusals(ports: ClusterPorts) -> KnownRefusals:
    """Return everything that is known now."""
    notes = {note.name: note for note in ports.ledger.notes(ports.cluster.name, _PREFIX)}
    subnets = notes.pop(_SUBNETS, Note(name=_SUBNETS))
    records = (from_plain(Refusals, note.value) for note in notes.values())
    return KnownRefusals(
        subnets=frozenset(_excluded(ports, subnets)),
        records={record.provisioner: record for record in records},
    )


def refusals_of(ports: ClusterPorts, provisioner: Provisioner, site: Site) -> Refusals:
    """Return the refusals that apply to a Provisioner as it is now, as they are stored."""
    note = ports.ledger.note(ports.cluster.name, f"{_OF_PROVISIONER}{provisioner.name}")
    known = from_plain(Refusals, {"provisioner": provisioner.name, **note.value})
    return known.as_of(_shape(ports, provisioner), _site(site))


def save_refusals(ports: ClusterPorts, record: Refusals) -> None:
    """Save what EC2 refused to a Provisioner, for six hours."""
    note = Note(name=f"{_OF_PROVISIONER}{record.provisioner}", value=to_plain(record))
    ports.ledger.put_note(ports.cluster.name, note, ports.clock.now() + _KEPT)


def exclude_subnets(ports: ClusterPorts, subnets: Iterable[str]) -> None:
    """Exclude subnets for three minutes, for all Provisioners of the cluster that use them."""
    until = ports.clock.now() + _SUBNET_SPAN
    kept = _excluded(ports, ports.ledger.note(ports.cluster.name, _SUBNETS))
    value = kept | dict.fromkeys(subnets, until.isoformat())
    ports.ledger.put_note(ports.cluster.name, Note(name=_SUBNETS, value=value), until)


def _excluded(ports: ClusterPorts, note: Note) -> dict[str, str]:
    """Return the subnets of a note that are still excluded, and until when."""
    now = ports.clock.now()
    return {
        subnet: until for subnet, until in note.value.items() if now < datetime.fromisoformat(until)
    }


def _shape(ports: ClusterPorts, provisioner: Provisioner) -> str:
    """Return a fingerprint of a Provisioner and of what the attachment adds to its launches."""
    own = replace(provisioner, resource_version="", generation=0, warnings=())
    return _fingerprint([own, ports.profile_of(provisioner.template)])


def _site(site: Site) -> str:
    """Return a fingerprint of subnets and security groups, without the free addresses."""
    return _fingerprint(
        [sorted(subnet.subnet_id for subnet in site.subnets), list(site.security_groups)]
    )


def _fingerprint(value: object) -> str:
    return hashlib.sha256(to_json(value)).hexdigest()[:_LENGTH]
