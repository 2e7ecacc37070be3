"""Half of the pods leave: what is left of a problem, and of the machines that were planned."""

import random
from collections.abc import Mapping
from dataclasses import replace

from tests.peers.answers import Answer, Machine
from tests.peers.problems import Problem


def half(problem: Problem, seed: int) -> tuple[Problem, Mapping[str, str]]:
    """Return the problem of the pods that stay, and their names in it by their names before."""
    pods = [pod for workload in problem.workloads for pod in workload.pods]
    staying = set(random.Random(seed).sample(pods, len(pods) // 2))
    names: dict[str, str] = {}
    workloads = []
    for workload in problem.workloads:
        stay = [pod for pod in workload.pods if pod in staying]
        smaller = replace(workload, replicas=len(stay))
        names.update(zip(stay, smaller.pods, strict=True))
        workloads += [smaller] if stay else []
    return replace(problem, workloads=tuple(workloads)), names


def without_leaving(answer: Answer, names: Mapping[str, str]) -> tuple[Machine, ...]:
    """Return the machines of a plan, with the pods that stay by their new names."""
    return tuple(
        replace(machine, pods=tuple(names[pod] for pod in machine.pods if pod in names))
        for machine in answer.machines
    )
