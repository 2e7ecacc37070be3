"""CronJob: a Job at each time of its schedule, in real time whatever the speed.

Source: https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/cronjob/
cronjob_controllerv2.go and utils.go (names, policies, history), read 2026-11-25.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.controllers.workload import Workload, owner_reference, together
from infra.local.cluster_simulator.kinds import CRON_JOB, JOB
from infra.local.cluster_simulator.rules.matching import is_true
from infra.local.cluster_simulator.world import stamp

# Apart from the reader of disruption budgets, whose mistakes a simulation must not share.
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_ALREADY_EXISTS: Final = 409


class CronJobs(Workload):
    """Makes Jobs when they are due, and deletes those that ended long ago."""

    kind = CRON_JOB
    owned = JOB

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Start the Job that is due, forget old ones, and come back at the next time."""
        spec, now = owner["spec"], datetime.now(UTC)
        active = [job for job in owned if not _has_ended(job)]
        await self._forget(spec, owned)
        status: Json = {}
        ended = [job["status"]["completionTime"] for job in owned if is_true(job, "Complete")]
        if ended:
            status["lastSuccessfulTime"] = max(ended)
        due, wait = moments(spec, now)
        if due is not None and due > _last(owner) and not spec.get("suspend"):
            if active and spec.get("concurrencyPolicy") == "Replace":
                await together(partial(self.world.client.delete, JOB), active)
                active = []
            if not active or spec.get("concurrencyPolicy") != "Forbid":
                if not _is_late(spec, due, now):
                    active += await self._start(owner, due)
                status["lastScheduleTime"] = stamp(due)
        status["active"] = [JOB.reference(job, "resourceVersion") for job in active]
        await self.world.replace_status(CRON_JOB, owner, status)
        return None if spec.get("suspend") else wait

    async def _start(self, owner: Json, due: datetime) -> list[Json]:
        template, meta = owner["spec"]["jobTemplate"], owner["metadata"]
        given = template.get("metadata") or {}
        metadata = {
            # A name of its own for each time: two controllers could not start it twice.
            "name": f"{meta['name']}-{int(due.timestamp()) // 60}",
            "namespace": meta["namespace"],
            "labels": given.get("labels") or {},
            "annotations": {**(given.get("annotations") or {}), _SCHEDULED_AT: stamp(due)},
            "ownerReferences": [owner_reference(CRON_JOB, owner)],
        }
        try:
            return [await self.world.create(JOB, JOB.document(metadata, spec=template["spec"]))]
        except ApiError as error:
            if error.code != _ALREADY_EXISTS:
                raise
            return []

    async def _forget(self, spec: Json, owned: list[Json]) -> None:
        for condition, field in (
            ("Complete", "successfulJobsHistoryLimit"),
            ("Failed", "failedJobsHistoryLimit"),
        ):
            ended = sorted((job for job in owned if is_true(job, condition)), key=_age)
            surplus = len(ended) - spec[field]
            await together(partial(self.world.client.delete, JOB), ended[: max(surplus, 0)])


def moments(spec: Json, now: datetime) -> tuple[datetime | None, float | None]:
    """Return the last time of a schedule up to now, and the seconds until the next.

    Both are None for a schedule or a time zone that cannot be read: the real controller sends an
    Event and starts nothing.
    """
    try:
        zone = ZoneInfo(spec.get("timeZone") or "UTC")
        written: str = spec["schedule"]
        schedule = _WORDS.get(written, written)
        here = now.astimezone(zone)
        last = _first(CronSim(schedule, here + timedelta(microseconds=1), reverse=True))
        coming = _first(CronSim(schedule, here))
    except (CronSimError, ZoneInfoNotFoundError, ValueError):
        return None, None
    return last, None if coming is None else (coming - now).total_seconds()


def _first(times: Iterable[datetime]) -> datetime | None:
    return next((time.astimezone(UTC) for time in times), None)


def _last(owner: Json) -> datetime:
    told = (owner.get("status") or {}).get("lastScheduleTime")
    return datetime.fromisoformat(told or owner["metadata"]["creationTimestamp"])


def _is_late(spec: Json, due: datetime, now: datetime) -> bool:
    deadline = spec.get("startingDeadlineSeconds")
    return deadline is not None and (now - due).total_seconds() > deadline


def _has_ended(job: Json) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _age(job: Json) -> str:
    return str(job["metadata"]["creationTimestamp"])
