"""Other circumstances that manifests are planned for: more replicas, no spot, one zone less."""

import argparse
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from functions.cli.input_error import InputError
from functions.cli.plan.cron_starts import cron_starts
from functions.cli.plan.reading.autoscalers import is_autoscaler, replica_bounds, with_replicas
from functions.cli.plan.reading.checks import required_section
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.workloads import Key, is_workload, job_pods, key_of
from shared.disruption.simulate import as_pending
from shared.manifests.raw_json import mapping
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.nearest import nearest
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

TODAY: Final = "today"
HPA_MAX: Final = "hpa-max"
CRON_PEAK: Final = "cron-peak"
_CRON_JOB: Final = "CronJob"
_REPLICAS: Final = re.compile(r"(?P<name>[^/=]+/[^/=]+)=(?P<count>\d{1,6})", re.ASCII)
_WEEK: Final = timedelta(days=7)

Documents = Sequence[Document]


class Scenario(Struct, frozen=True, kw_only=True):
    """Circumstances under which the same manifests are planned; by default those of today.

    Attributes:
        name: Heading of its column.
        of_documents: Returns the manifests as they would be.
        of_snapshot: Returns the snapshot as it would be.
        catalog: File with the prices that hold then; empty for those of the other columns.
    """

    name: str = TODAY
    of_documents: Callable[[Documents], Documents] = lambda documents: documents
    of_snapshot: Callable[[ClusterSnapshot], ClusterSnapshot] = lambda snapshot: snapshot
    catalog: str = ""


def asked_scenarios(
    arguments: argparse.Namespace, documents: Documents, now: datetime
) -> Iterator[Scenario]:
    """Yield the scenarios that options ask for, in the order of the help.

    Args:
        documents: All manifests, those of autoscalers included.
        now: The week after this time is searched for the busiest hour of CronJobs.

    Raises:
        InputError: If an option names what is not among the manifests.
        InvalidDocumentError: If an autoscaler has a wrong field.
    """
    for moment in dict.fromkeys(arguments.at or ()):
        yield _busiest_hour(documents, now) if moment == CRON_PEAK else _scaled(documents, moment)
    for written in arguments.replicas or ():
        yield Scenario(name=written, of_documents=_with_replicas(_counts(written, documents)))
    if arguments.no_spot:
        yield Scenario(name="no spot", of_snapshot=without_spot)
    for zone in dict.fromkeys(arguments.without_zone or ()):
        yield Scenario(name=f"without {zone}", of_snapshot=_without(zone))
    for name in dict.fromkeys(arguments.other_catalog or ()):
        yield Scenario(name=name, catalog=name)


def without_spot(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which EC2 has no spot capacity; nodes that are there stay."""
    left = (
        replace(
            instance_type,
            offerings=tuple(
                offering
                for offering in instance_type.offerings
                if offering.capacity_type != CapacityType.SPOT
            ),
        )
        for instance_type in snapshot.instance_types
    )
    return replace(snapshot, instance_types=tuple(left))


def without_zone(snapshot: ClusterSnapshot, zone: str) -> ClusterSnapshot:
    """Return the snapshot without a zone: its nodes are gone, and the pods on them wait.

    Pods without a controller are gone with their node, and pods of DaemonSets.

    Raises:
        InputError: If no owner of nodes has the zone.
    """
    known = sorted({name for site in snapshot.sites for name in site.zones})
    if zone not in known:
        raise InputError(f"--without-zone {zone}: no such zone; {_instead(zone, known)}")
    gone = {node.name for node in snapshot.nodes if node.labels.get(keys.ZONE) == zone}
    moving = [
        as_pending(pod)
        for pod in snapshot.bound
        if pod.node_name in gone and pod.keeps_its_node and pod.owner is not None
    ]
    return replace(
        snapshot,
        nodes=tuple(node for node in snapshot.nodes if node.name not in gone),
        bound=tuple(pod for pod in snapshot.bound if pod.node_name not in gone),
        pending=tuple(sorted((*snapshot.pending, *moving), key=lambda pod: pod.key)),
        sites=tuple(
            replace(site, zones=tuple(name for name in site.zones if name != zone))
            for site in snapshot.sites
        ),
    )


def _instead(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f"did you mean {near}?" if near else f"there are: {', '.join(known) or 'none'}"


def _without(zone: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda snapshot: without_zone(snapshot, zone)


def _scaled(documents: Documents, moment: str) -> Scenario:
    """Return the scenario in which all autoscalers of pods are at their maximum or minimum."""
    bounds = [replica_bounds(document) for document in documents if is_autoscaler(document)]
    if not bounds:
        raise InputError(f"--at {moment}: the manifests have no HorizontalPodAutoscaler")
    name = "HPAs at maximum" if moment == HPA_MAX else "HPAs at minimum"
    counts = {one.workload: one.most if moment == HPA_MAX else one.least for one in bounds}
    return Scenario(name=name, of_documents=_with_replicas(counts))


def _counts(written: str, documents: Documents) -> dict[Key, int]:
    """Return the replicas by workload that `--replicas` states."""
    found: dict[Key, int] = {}
    there = {
        f"{document.namespace}/{document.name}": key_of(document)
        for document in documents
        if is_workload(document) and document.kind != _CRON_JOB
    }
    for part in written.split(","):
        match = _REPLICAS.fullmatch(part)
        if match is None:
            raise InputError(f"--replicas {written}: write NAMESPACE/NAME=N, more after commas")
        name = match["name"]
        if name not in there:
            raise InputError(
                f"--replicas {name}: no such workload; {_instead(name, sorted(there))}"
            )
        found[there[name]] = int(match["count"])
    return found


def _with_replicas(counts: Mapping[Key, int]) -> Callable[[Documents], Documents]:
    """Return a function that gives workloads other numbers of replicas."""

    def change(document: Document) -> Document:
        count = counts.get(key_of(document))
        return document if count is None else with_replicas(document, count)

    return lambda documents: list(map(change, documents))


def _busiest_hour(documents: Documents, now: datetime) -> Scenario:
    """Return the hour of the coming week in which most pods of CronJobs are started.

    Runs are taken to last until the hour ends, and each CronJob to have one run in it.
    """
    pods: dict[datetime, int] = {}
    started: dict[datetime, set[Key]] = {}
    jobs = [document for document in documents if document.kind == _CRON_JOB]
    if not jobs:
        raise InputError(f"--at {CRON_PEAK}: the manifests have no CronJob")
    for document in jobs:
        count = job_pods({}, required_section(document, "spec", "jobTemplate", "spec"))
        for hour in _hours(document, now):
            started.setdefault(hour, set()).add(key_of(document))
            pods[hour] = pods.get(hour, 0) + count
    busiest = max(pods, key=lambda hour: (pods[hour], -hour.timestamp()), default=None)
    runs = started[busiest] if busiest is not None else set[Key]()
    name = f"CronJobs of {busiest:%A %H:00} UTC" if busiest is not None else "no CronJob"

    def suspended(document: Document) -> Document:
        if document.kind != _CRON_JOB or key_of(document) in runs:
            return document
        spec = {**mapping(document.raw.get("spec")), "suspend": True}
        return replace(document, raw={**document.raw, "spec": spec})

    return Scenario(name=name, of_documents=lambda them: list(map(suspended, them)))


def _hours(document: Document, now: datetime) -> set[datetime]:
    """Return the hours of the coming week in which a CronJob starts a run."""
    coming = itertools.takewhile(lambda start: start < now + _WEEK, cron_starts(document, now))
    return {start.astimezone(UTC).replace(minute=0, second=0, microsecond=0) for start in coming}
