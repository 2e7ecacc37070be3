"""Draws a whole cluster from a seed, as the raw documents an API server would hold.

A case is one JSON document, so that it can be printed, cut down and run again.
"""

import random
from typing import Final

from infra.local.cluster_simulator.rules.amounts import amounts, pod_requests
from infra.local.cluster_simulator.rules.predicates import (
    allocatable_of,
    host_ports,
    node_reasons,
    port_reasons,
)
from tests.scheduler_oracle.clusters import nodes as machines
from tests.scheduler_oracle.clusters import pods as workloads
from tests.scheduler_oracle.clusters.catalog import ZONES, draw_names, draw_unavailable
from tests.scheduler_oracle.clusters.daemonsets import daemon_pod
from tests.scheduler_oracle.clusters.provisioners import daemonset, provisioner
from tests.scheduler_oracle.clusters.seeded_random import FEATURES, Dice, Json
from tests.scheduler_oracle.clusters.storage import draw_claims
from tests.scheduler_oracle.clusters.topology import SPACES

# What others need to come up at all, or what nearly every cluster has.
_COMMON: Final = {"nodes": 0.6, "standing": 0.6, "several_rules": 0.5, "daemonsets": 0.4}


def draw(seed: int, enabled: frozenset[str]) -> Json:
    """Return the case of a seed; only enabled features come up."""
    rng = random.Random(seed)
    share = rng.choice((0.1, 0.2, 0.2, 0.35, 0.5))
    on = {value for value in FEATURES if rng.random() < _COMMON.get(value, share)}
    on.add(rng.choice(FEATURES))
    dice = Dice(rng, frozenset(on) & enabled)
    case: Json = {
        "seed": seed,
        "features": sorted(dice.on),
        "namespaces": SPACES,
        "types": draw_names(dice),
        "older_labels": bool(dice.on & {"aliases", "claims"}),
        "claims": [],
        "volumes": [],
        "storage_classes": [],
    }
    case["unavailable"] = draw_unavailable(dice, case["types"])
    count = dice.upto(2, 4) if "several_provisioners" in dice.on else 1
    case["provisioners"] = [provisioner(dice, f"buyer{n}") for n in range(count)]
    case["sites"] = {f"buyer{n}": _site(dice) for n in range(count)}
    case["daemonsets"] = (
        [daemonset(dice, f"agent{n}") for n in range(dice.upto(1, 3))]
        if "daemonsets" in dice.on
        else []
    )
    _draw_nodes(dice, case)
    _draw_pods(dice, case)
    draw_claims(dice, case)
    case["settings"] = {"improve_iterations": dice.one((0, 0, 0, 5, 60))}
    return case


def _site(dice: Dice) -> list[str]:
    return list(ZONES) if dice.luck(0.8) else dice.some(ZONES, 2)


def _draw_nodes(dice: Dice, case: Json) -> None:
    case["nodes"], case["slots"] = [], []
    if "nodes" in dice.on:
        for number in range(dice.upto(1, 6)):
            foreign = dice.has("foreign_nodes", 0.5)
            owner = None if foreign else dice.one(case["provisioners"])
            made = machines.node(dice, f"n{number}", owner, case["types"])
            if dice.has("unfit_nodes", 0.4):
                machines.make_unfit(dice, made)
            case["nodes"].append(made)
    if dice.on & {"in_flight", "promises"}:
        for number in range(dice.upto(1, 3)):
            owner = dice.one(case["provisioners"])
            case["slots"].append(machines.slot(dice, number, owner, case["types"]))


def _draw_pods(dice: Dice, case: Json) -> None:
    apps = [f"w{n}" for n in range(dice.upto(1, 6))]
    size = dice.one((2, 5, 8, 12, 20, 30)) if dice.luck(0.97) else dice.upto(60, 150)
    templates = [workloads.template(dice, app, apps) for app in apps]
    case["pods"] = []
    rooms = _Rooms(case)
    waiting: list[Json] = []
    for number in range(size):
        made = workloads.pod(dice, dice.one(templates), f"p{number}", number)
        if dice.has("odd_pods", 0.25):
            workloads.make_odd(dice, made)
        else:
            waiting.append(made)
        case["pods"].append(made)
    if "standing" in dice.on and case["nodes"]:
        for number in range(dice.upto(1, 12)):
            made = workloads.pod(dice, dice.one(templates), f"s{number}", number)
            _stand_somewhere(dice, case, rooms, made)
    for flying in case["slots"]:
        for made in dice.some(waiting, 3) if waiting and dice.luck(0.7) else ():
            if rooms.take(made, flying["node"]):
                flying["pods"].append(made["metadata"]["uid"])
                waiting.remove(made)
    if waiting and case["nodes"] and dice.has("nominated", 0.7):
        chosen = dice.one(waiting)
        chosen["status"]["nominatedNodeName"] = dice.one(case["nodes"])["metadata"]["name"]


def _stand_somewhere(dice: Dice, case: Json, rooms: "_Rooms", made: Json) -> None:
    node = dice.one(case["nodes"])
    if (dice.luck(0.8) and node_reasons(made, node)) or not rooms.take(made, node):
        return
    workloads.stand(made, node["metadata"]["name"])
    if dice.has("odd_pods", 0.3):
        workloads.make_leaving(dice, made)
    case["pods"].append(made)


class _Rooms:
    """What is left on the nodes that stand, daemons taken off."""

    def __init__(self, case: Json) -> None:
        self._free: dict[str, dict[str, int]] = {}
        self._ports: dict[str, list[tuple[str, str, int]]] = {}
        for node in (*case["nodes"], *(slot["node"] for slot in case["slots"])):
            name = node["metadata"]["name"]
            self._free[name] = amounts(allocatable_of(node))
            self._ports[name] = []
            for daemon_set in case["daemonsets"]:
                made = daemon_pod(daemon_set, node)
                if made is not None and self.take(made, node) and node in case["nodes"]:
                    case["pods"].append(made)

    def take(self, pod: Json, node: Json) -> bool:
        """Take the pod's room on a node; return whether it was there."""
        free = self._free[node["metadata"]["name"]]
        ports = self._ports[node["metadata"]["name"]]
        requests = pod_requests(pod)
        if any(amount > free.get(k, 0) for k, amount in requests.items()):
            return False
        if port_reasons(pod, ports):
            return False
        ports.extend(host_ports(pod))
        for name, amount in requests.items():
            free[name] -= amount
        return True
