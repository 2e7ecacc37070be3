"""What EC2 refuses to a cluster's Provisioners, in notes written under the cluster's lease."""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from shared.model.codec import from_plain, to_json, to_plain
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import FleetError
from shared.model.ec2.refusals import KEPT, Refusals
from shared.model.note import Note
from shared.model.provisioner import Provisioner
from shared.ports import ClusterPorts, Site

_PREFIX: Final = "refused"
_OF_PROVISIONER: Final = f"{_PREFIX}#"
_SUBNETS: Final = f"{_PREFIX}-subnets"
# Addresses are freed when pods end; DescribeSubnets is called again each minute.
_SUBNET_SPAN: Final = timedelta(minutes=3)
_LENGTH: Final = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnownRefusals:
    """What EC2 refused to one cluster, all read at the same time.

    Attributes:
        subnets: Subnets that are excluded now.
        records: Refusals by name of the Provisioner.
    """

    subnets: frozenset[str] = frozenset()
    records: Mapping[str, Refusals] = dataclasses.field(default_factory=dict, hash=False)

    def of(self, ports: ClusterPorts, provisioner: Provisioner, site: Site) -> Refusals:
        """Return the refusals that apply to a Provisioner as it is now."""
        known = self.records.get(provisioner.name)
        if known is None:
            return Refusals(provisioner=provisioner.name)
        return known.as_of(provisioner_fingerprint(ports, provisioner), site_fingerprint(site))

    def reason_for(self, ports: ClusterPorts, provisioner: Provisioner) -> str:
        """Return why EC2 refused a Provisioner as it is now, empty if it did not."""
        known = self.records.get(provisioner.name)
        if known is None or known.shape != provisioner_fingerprint(ports, provisioner):
            return ""
        return known.reason()

    def without_refused_subnets(self, site: Site) -> Site:
        """Return the site without the excluded subnets."""
        if not self.subnets:
            return site
        kept = tuple(subnet for subnet in site.subnets if subnet.subnet_id not in self.subnets)
        return dataclasses.replace(site, subnets=kept)


class RefusalStore:
    """Reads and writes what EC2 refuses, for one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._ports = ports

    def read(self) -> KnownRefusals:
        """Return everything that is known now."""
        now = self._ports.clock.now()
        notes = self._ports.ledger.notes(self._ports.cluster.name, _PREFIX)
        records = [_record(note) for note in notes if note.name.startswith(_OF_PROVISIONER)]
        subnets = next((note.value for note in notes if note.name == _SUBNETS), {})
        return KnownRefusals(
            subnets=frozenset(
                value for value, until in subnets.items() if now < datetime.fromisoformat(until)
            ),
            records={record.provisioner: record for record in records},
        )

    def exclude_subnets(self, subnets: Iterable[str]) -> None:
        """Exclude subnets for three minutes."""
        ports, now = self._ports, self._ports.clock.now()
        note = ports.ledger.note(ports.cluster.name, _SUBNETS)
        kept = {
            value: until
            for value, until in note.value.items()
            if now < datetime.fromisoformat(until)
        }
        kept |= dict.fromkeys(subnets, (now + _SUBNET_SPAN).isoformat())
        ports.ledger.put_note(
            ports.cluster.name, Note(name=_SUBNETS, value=kept), now + _SUBNET_SPAN
        )

    def exclude_offerings(
        self,
        provisioner: Provisioner,
        site: Site,
        offerings: Iterable[OfferingKey],
        span: timedelta,
    ) -> None:
        """Exclude offerings for one Provisioner for `span`, as long as it is unchanged."""
        until = self._ports.clock.now() + span
        self._put(self._known(provisioner, site).with_options(offerings, until))

    def save_refusal(
        self,
        provisioner: Provisioner,
        site: Site,
        error: FleetError,
        offerings: frozenset[OfferingKey],
        *,
        worked: bool = False,
    ) -> Refusals:
        """Save that a launch was refused as a whole; return the updated refusals.

        Args:
            worked: Whether nodes exist that EC2 launched for the Provisioner as it is now.
        """
        known, now = self._known(provisioner, site), self._ports.clock.now()
        record = known.after_refusal(error, offerings, now, worked=worked)
        self._put(record)
        return record

    def save_success(self, provisioner: Provisioner, site: Site, *, started: bool = False) -> bool:
        """Save that EC2 launched an instance; return whether that ended a refusal.

        Args:
            started: Whether the instance is known to run.
        """
        known = self._known(provisioner, site)
        after = known.after_success(self._ports.clock.now(), started=started)
        if after != known:
            self._put(after)
        return known.error is not None and after.error is None

    def _known(self, provisioner: Provisioner, site: Site) -> Refusals:
        name = f"{_OF_PROVISIONER}{provisioner.name}"
        note = self._ports.ledger.note(self._ports.cluster.name, name)
        known = _record(note) if note.version else Refusals(provisioner=provisioner.name)
        return known.as_of(
            provisioner_fingerprint(self._ports, provisioner), site_fingerprint(site)
        )

    def _put(self, record: Refusals) -> None:
        note = Note(name=f"{_OF_PROVISIONER}{record.provisioner}", value=_plain(record))
        self._ports.ledger.put_note(self._ports.cluster.name, note, self._ports.clock.now() + KEPT)


def provisioner_fingerprint(ports: ClusterPorts, provisioner: Provisioner) -> str:
    """Return a fingerprint of a Provisioner and of what the attachment adds to its launches."""
    own = dataclasses.replace(provisioner, resource_version="", generation=0, warnings=())
    return _fingerprint([own, ports.profile_of(provisioner.template)])


def site_fingerprint(site: Site) -> str:
    """Return a fingerprint of subnets and security groups, without the free addresses."""
    return _fingerprint(
        [sorted(subnet.subnet_id for subnet in site.subnets), list(site.security_groups)]
    )


def _fingerprint(value: object) -> str:
    return hashlib.sha256(to_json(value)).hexdigest()[:_LENGTH]


def _plain(record: Refusals) -> dict[str, Any]:
    """Return refusals as plain JSON; offerings as one text each, since a note has 400 KB."""
    options = to_plain(list(record.options.values()))
    return {
        **to_plain(dataclasses.replace(record, suspects=frozenset(), options={})),
        "suspects": sorted(map(_name, record.suspects)),
        "options": dict(zip(map(_name, record.options), options, strict=True)),
    }


def _record(note: Note) -> Refusals:
    value = note.value
    moments = from_plain(dict[str, datetime], value["options"])
    return dataclasses.replace(
        from_plain(Refusals, {**value, "suspects": (), "options": {}}),
        suspects=frozenset(map(_offering, value["suspects"])),
        options={_offering(name): until for name, until in moments.items()},
    )


def _name(offering: OfferingKey) -> str:
    return f"{offering.instance_type}/{offering.zone}/{offering.capacity_type.value}"


def _offering(name: str) -> OfferingKey:
    instance_type, zone, capacity_type = name.split("/")
    return OfferingKey(
        instance_type=instance_type, zone=zone, capacity_type=CapacityType(capacity_type)
    )
