"""A real trace: days of a production cluster, read from a file that is not in this repository.

The file is `openb_pod_list_default.csv` of cluster-trace-gpu-v2023 (Weng and others, "Beware of
Fragmentation", USENIX ATC 2023, https://github.com/alibaba/clusterdata), compressed by gzip: a row
for each pod with its requests and the seconds of its creation, scheduling and deletion.
"""

import csv
import gzip
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.builders import MIB
from tests.simulation.cluster.workloads import JOB
from tests.weeks.drawn import GENERAL
from tests.weeks.traces import HOUR, Change, Trace
from tests.weeks.workloads import Workload

_DAY_SECONDS: Final = 24 * HOUR
# Nearly all pods were created on these days of the trace.
_DAYS: Final = range(116, 148)
_DAYS_DRAWN: Final = 3
_GPU_FAMILIES: Final = ("g5", "g6")
_LEAST_SECONDS: Final = 10


def published(path: Path, seed: int, *, gpus: bool) -> Trace:
    """Return three drawn days, one after the other, with whole GPUs or with none.

    A pod that was never scheduled is left out. Each of the others runs for as long as it did, from
    when it is Ready, or from the beginning of the first day.

    Raises:
        ValueError: If the file is not that trace.
    """
    rng = random.Random(f"published {seed}")
    days = sorted(rng.sample(_DAYS, _DAYS_DRAWN))
    workloads, changes = [], []
    for number, day in enumerate(days):
        for name, workload, second in _pods(path, day, gpus=gpus):
            if number and second == 0:
                # What stayed over night before a drawn day was there before it, too.
                continue
            unique = f"day-{number}-{name}"
            workload.name = unique
            workloads.append(workload)
            changes.append(Change(number * _DAY_SECONDS + second, unique, 1))
    return Trace(
        name="published with GPUs" if gpus else "published",
        hours=24.0 * _DAYS_DRAWN,
        families=(*GENERAL, *(_GPU_FAMILIES if gpus else ())),
        workloads=tuple(workloads),
        changes=tuple(sorted(changes)),
        said=f"days {', '.join(map(str, days))} of a production cluster, {len(workloads)} pods",
    )


def _pods(path: Path, day: int, *, gpus: bool) -> Iterator[tuple[str, Workload, float]]:
    """Yield the pods of a day and the second of their creation, 0 for those there already."""
    begins, ends = day * _DAY_SECONDS, (day + 1) * _DAY_SECONDS
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            try:
                created, deleted = int(row["creation_time"]), int(row["deletion_time"] or 0)
                scheduled = row["scheduled_time"]
                cpu, memory = int(row["cpu_milli"]), int(row["memory_mib"])
                count = int(row["num_gpu"])
            except (KeyError, ValueError) as error:
                raise ValueError(f"{path}: not the list of pods of the trace: {error}") from error
            if not scheduled or created >= ends or deleted <= begins:
                continue
            begun = max(int(scheduled), begins)
            workload = Workload(
                name=row["name"],
                kind=JOB,
                cpu=cpu,
                memory=memory * MIB,
                gpus=count if gpus else 0,
                starts_seconds=5,
                seconds=max(deleted - begun, _LEAST_SECONDS),
            )
            yield row["name"], workload, float(max(created - begins, 0))
