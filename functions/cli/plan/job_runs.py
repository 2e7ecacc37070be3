"""What Jobs cost, apart from what runs always: for how long they run and how often."""

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from functions.cli.plan.cron_starts import cron_starts
from functions.cli.plan.job_pods import is_of_job
from functions.cli.plan.planned import Planned
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.workloads import Key, cron_job_of, key_of
from functions.cli.plan.svg_plan import workload_of
from functions.cli.plan.workload_costs import workload_costs
from shared.manifests.raw_json import integer, mapping
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS, counted, dollars
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.pods import Pod

# Of a price in a table: without the pods of Jobs and CronJobs.
WITHOUT_JOBS: Final = " without Jobs"
_MOST_ROWS: Final = 20
_YEAR: Final = timedelta(days=365)
_MOST_STARTS: Final = 1_000
_HOUR: Final = timedelta(hours=1)


def job_run_lines(planned: Planned) -> Iterator[str]:
    """Yield what each workload of Jobs costs while it runs, for how long and how often it runs.

    The first twenty; none where the plan without Jobs costs the same.
    """
    if planned.always is None:
        return
    documents = {key_of(document): document for document in planned.jobs}
    costs = workload_costs(planned)
    jobs = {workload_of(pod): pod for pod in planned.snapshot.pending if is_of_job(pod)}
    found = sorted((name for name in jobs if name in costs), key=lambda name: (-costs[name], name))
    for name in found[:_MOST_ROWS]:
        document = _document(jobs[name], documents)
        yield _line(name, costs[name], document, planned.snapshot.taken_at)
    if (more := len(found) - _MOST_ROWS) > 0:
        yield f"{counted(more, 'more Job')} cost less"


def _document(pod: Pod, documents: dict[Key, Document]) -> Document | None:
    """Return the Job or CronJob of a pod, None if it is not among the documents."""
    if pod.owner is None:
        return None
    kind, name = pod.owner.kind, pod.owner.name
    of_run = documents.get(("CronJob", pod.namespace, cron_job_of(name)))
    return documents.get((kind, pod.namespace, name), of_run)


def _line(name: str, cost: int, document: Document | None, now: datetime) -> str:
    spec = mapping(document.raw.get("spec")) if document is not None else {}
    monthly = None
    if document is not None and document.kind == "CronJob":
        monthly = _starts_a_month(document, now)
        spec = mapping(mapping(spec.get("jobTemplate")).get("spec"))
    seconds = integer(spec.get("activeDeadlineSeconds"))
    parts = [f"{document.kind if document is not None else 'Job'} {name}: {dollars(cost)}/h"]
    parts.append(
        "while it runs, how long is not known (activeDeadlineSeconds is not set)"
        if seconds is None
        else f"while it runs, {seconds:,} s at most (activeDeadlineSeconds)"
    )
    line = " ".join(parts)
    if monthly is not None:
        line += f", {monthly:,.0f} times a month" if monthly >= 1 else ", less than once a month"
    if seconds is not None:
        dollars_a_run = cost * seconds / _HOUR.total_seconds() / MICROS
        most = dollars_a_run * (1 if monthly is None else monthly)
        line += f": ${most:,.2f} {'a run' if monthly is None else 'a month'} at most"
    return line


def _starts_a_month(document: Document, now: datetime) -> float | None:
    """Return how many runs a CronJob starts in a month of 730 hours; None if that is not known."""
    try:
        coming = cron_starts(document, now)
    except InvalidManifestError:
        return None
    until = now + _YEAR
    starts = list(
        itertools.islice(itertools.takewhile(lambda start: start < until, coming), _MOST_STARTS)
    )
    searched = starts[-1] - now if len(starts) == _MOST_STARTS else _YEAR
    return len(starts) * HOURS_A_MONTH * _HOUR / searched
