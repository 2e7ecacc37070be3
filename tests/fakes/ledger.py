"""A ledger in memory that keeps the promises of the Ledger port."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from shared.aws.ledger.backoff import Backoff, TokenBucket, next_backoff
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.launches import LaunchIntent, Lease, Slot, slot_of
from shared.model.ec2.quotas import Quota, QuotaReached
from shared.model.errors import ConflictError
from shared.model.note import Note
from shared.model.values import replace


@dataclass
class _LeaseRow:
    holder: str
    token: int
    until: datetime
    dirty: bool = False
    free: bool = False
    released: int = 0


class Call(NamedTuple):
    """One call that changes something, and what it was about."""

    method: str
    subject: object


class FakeLedger:
    """Implements shared.ports.Ledger.

    Every write is in `calls`. `fail_next("fill_slot", error)` makes the next call of a method
    raise. `steal("name", now)` takes a lease away from its holder.
    """

    def __init__(
        self,
        *,
        lease_span: timedelta = timedelta(seconds=50),
        burst: int = 5,
        per_second: float = 2.0,
    ) -> None:
        self.calls: list[Call] = []
        self._errors: dict[str, list[Exception]] = {}
        self.intents: dict[tuple[str, str, int], LaunchIntent] = {}
        self.closed: dict[tuple[str, str, int], LaunchIntent] = {}
        self.slot_values: dict[tuple[str, str], Slot] = {}
        # Each slot as it was written, the refused ones left out.
        self.written_slots: list[Slot] = []
        self.instances: dict[str, str] = {}
        self.paired: dict[str, str] = {}
        self.refusals: dict[str, dict[OfferingKey, Backoff]] = {}
        self.quotas: dict[Quota, tuple[QuotaReached, Backoff]] = {}
        self.note_values: dict[tuple[str, str], Note] = {}
        self._leases: dict[str, _LeaseRow] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._span = lease_span
        self._burst = burst
        self._per_second = per_second

    def steal(self, cluster: str, now: datetime) -> None:
        """Take the lease as another invocation would once it had expired."""
        token = self._leases[cluster].token if cluster in self._leases else 0
        self._leases[cluster] = _LeaseRow("thief", token + 1, now + self._span)

    def is_dirty(self, cluster: str) -> bool:
        """Return whether the lease carries the mark."""
        return cluster in self._leases and self._leases[cluster].dirty

    def is_held(self, cluster: str) -> bool:
        """Return whether the lease is not released, expired or not."""
        return cluster in self._leases and not self._leases[cluster].free

    def fail_next(self, method: str, *errors: Exception) -> None:
        """Make the next calls of a method raise these, one each, and change nothing."""
        self._errors.setdefault(method, []).extend(errors)

    def written(self, method: str) -> list[object]:
        """Return what the calls of a method were about, in order."""
        return [call.subject for call in self.calls if call.method == method]

    # --- the lease

    def acquire(self, cluster: str, holder: str, now: datetime) -> Lease | None:
        self._called("acquire", cluster)
        row = self._leases.get(cluster)
        if row is not None and not row.free and row.until >= now:
            row.dirty = True
            return None
        token = row.token + 1 if row is not None else 1
        released = row.released if row is not None else 0
        self._leases[cluster] = _LeaseRow(holder, token, now + self._span, released=released)
        if token != released + 1:
            for slot in self.slots(cluster):
                self.slot_values[cluster, slot.name] = replace(slot, version=slot.version + 1)
        return Lease(cluster=cluster, holder=holder, token=token, expires_at=now + self._span)

    def renew(self, lease: Lease, now: datetime) -> Lease:
        self._called("renew", lease.cluster)
        self._fence(lease)
        row = self._leases[lease.cluster]
        row.until = now + self._span
        return replace(lease, expires_at=now + self._span, dirty=row.dirty)

    def release(self, lease: Lease) -> bool:
        self._called("release", lease.cluster)
        row = self._leases.get(lease.cluster)
        if row is None or row.token != lease.token or row.free:
            return True
        if row.dirty:
            row.dirty = False
            return False
        row.free, row.released = True, row.token
        return True

    def abandoned(self, cluster: str, now: datetime) -> bool:
        row = self._leases.get(cluster)
        return row is not None and not row.free and row.until < now

    # --- intents and slots

    def open_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        self._called("open_intent", intent)
        self._fence(lease)
        key = (intent.cluster, intent.plan_id, intent.group)
        if key in self.intents:
            raise ConflictError(f"intent {key} stands written")
        self.intents[key] = intent
        return self._renewed(lease, now)

    def change_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        self._called("change_intent", intent)
        self._fence(lease)
        key = (intent.cluster, intent.plan_id, intent.group)
        known = self.intents.get(key)
        if known is None or known.attempt > intent.attempt:
            raise ConflictError(f"intent {key}: it is closed or at a later attempt")
        self.intents[key] = intent
        return self._renewed(lease, now)

    def close_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        self._called("close_intent", intent)
        self._fence(lease)
        key = (intent.cluster, intent.plan_id, intent.group)
        known = self.intents.get(key)
        if known is not None and known.attempt > intent.attempt:
            raise ConflictError(f"intent {key}: it is at a later attempt")
        self.intents.pop(key, None)
        self.closed[key] = intent
        return self._renewed(lease, now)

    def _renewed(self, lease: Lease, now: datetime) -> Lease:
        self._leases[lease.cluster].until = now + self._span
        return replace(lease, expires_at=now + self._span)

    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        found = [intent for intent in self.intents.values() if intent.cluster == cluster]
        return tuple(sorted(found, key=lambda entry: (entry.plan_id, entry.group)))

    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        self._called("fill_slot", slot)
        self._fence(lease)
        if (slot.cluster, slot.name) in self.slot_values or slot.instance_id in self.instances:
            return False
        self.slot_values[slot.cluster, slot.name] = replace(slot, version=1)
        self.written_slots.append(slot)
        self.instances[slot.instance_id] = slot.cluster
        self.paired[slot.instance_id] = slot.name
        return True

    def fill_slots(self, lease: Lease, slots: Sequence[Slot]) -> tuple[bool, ...]:
        return tuple(self.fill_slot(lease, slot) for slot in slots)

    def change_slot(self, slot: Slot) -> bool:
        self._called("change_slot", slot)
        known = self.slot_values.get((slot.cluster, slot.name))
        if known is None or known.instance_id != slot.instance_id:
            return False
        if slot.version not in (0, known.version):
            return False
        self.slot_values[slot.cluster, slot.name] = replace(slot, version=known.version + 1)
        self.written_slots.append(slot)
        return True

    def drop_slot(self, slot: Slot, lease: Lease | None = None) -> None:
        self._called("drop_slot", slot)
        if lease is not None:
            self._fence(lease)
        known = self.slot_values.get((slot.cluster, slot.name))
        if known is not None and known.instance_id == slot.instance_id:
            del self.slot_values[slot.cluster, slot.name]

    def drop_instance(self, instance_id: str) -> None:
        self._called("drop_instance", instance_id)
        self.instances.pop(instance_id, None)
        self.paired.pop(instance_id, None)

    def slots(self, cluster: str) -> tuple[Slot, ...]:
        found = [slot for (owner, _), slot in self.slot_values.items() if owner == cluster]
        return tuple(sorted(found, key=lambda entry: entry.name))

    def slot_with(self, cluster: str, instance_id: str) -> Slot | None:
        return slot_of(self.slots(cluster), instance_id)

    def cluster_of(self, instance_id: str) -> str | None:
        return self.instances.get(instance_id)

    def slot_of(self, instance_id: str) -> str | None:
        return self.paired.get(instance_id)

    # --- what clusters share

    def unavailable_offerings(self, now: datetime, cluster: str = "") -> frozenset[OfferingKey]:
        return frozenset(
            key
            for whose in {"", cluster}
            for key, refusal in self.refusals.get(whose, {}).items()
            if refusal.until > now
        )

    def mark_unavailable(
        self,
        offerings: Sequence[OfferingKey],
        now: datetime,
        *,
        certain: bool = True,
        cluster: str = "",
    ) -> None:
        if not offerings:
            return
        self._called("mark_unavailable", tuple(offerings))
        own = self.refusals.setdefault(cluster, {})
        for offering in sorted(set(offerings)):
            own[offering] = next_backoff(own.get(offering), now, certain=certain)

    def quotas_reached(self, now: datetime) -> tuple[QuotaReached, ...]:
        return tuple(
            sorted(
                quota_reached for quota_reached, kept in self.quotas.values() if kept.until > now
            )
        )

    def mark_quotas(self, marks: Sequence[QuotaReached], now: datetime) -> None:
        if not marks:
            return
        self._called("mark_quotas", tuple(marks))
        for mark in sorted(marks):
            known, kept = self.quotas.get(mark.quota, (mark, None))
            vcpus = min(mark.vcpus, known.vcpus) if kept and kept.until > now else mark.vcpus
            self.quotas[mark.quota] = (replace(mark, vcpus=vcpus), next_backoff(kept, now))

    def take_token(self, api: str, now: datetime) -> timedelta:
        self._called("take_token", api)
        kept = self._buckets.get(api, TokenBucket.full(self._burst, now))
        refilled = kept.refilled(self._burst, self._per_second, now)
        self._buckets[api] = refilled.taken(self._per_second)
        return self._buckets[api].wait(self._per_second)

    # --- memos

    def note(self, cluster: str, name: str) -> Note:
        return self.note_values.get((cluster, name), Note(name=name))

    def notes(self, cluster: str, prefix: str) -> tuple[Note, ...]:
        found = sorted(self.note_values.items())
        return tuple(
            note for (owner, name), note in found if owner == cluster and name.startswith(prefix)
        )

    def change_note(self, cluster: str, note: Note, until: datetime) -> bool:
        self._called("change_note", note)
        known = self.note(cluster, note.name).version
        if known == note.version:
            self.note_values[cluster, note.name] = replace(note, version=known + 1)
        return known == note.version

    def put_note(self, cluster: str, note: Note, until: datetime) -> None:
        self._called("put_note", note)
        version = self.note(cluster, note.name).version + 1
        self.note_values[cluster, note.name] = replace(note, version=version)

    def drop_note(self, cluster: str, name: str) -> None:
        self._called("drop_note", name)
        self.note_values.pop((cluster, name), None)

    def _fence(self, lease: Lease) -> None:
        row = self._leases.get(lease.cluster)
        if row is None or row.token != lease.token or row.free:
            raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")

    def _called(self, method: str, subject: object) -> None:
        waiting = self._errors.get(method)
        if waiting:
            raise waiting.pop(0)
        self.calls.append(Call(method, subject))
