"""What pods ask of nodes: selectors, affinity, tolerations, and what they use."""

from typing import Final

from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.catalog import ZONES
from tests.scheduler_oracle.clusters.seeded_random import Dice, Json

TAINTS: Final = (
    {"key": "example.com/batch", "value": "yes", "effect": "NoSchedule"},
    {"key": "example.com/batch", "value": "no", "effect": "NoSchedule"},
    {"key": "example.com/gpu", "effect": "NoSchedule"},
    {"key": "example.com/old", "value": "v1", "effect": "NoExecute"},
)
SOFT_TAINT: Final = {"key": "example.com/slow", "effect": "PreferNoSchedule"}
_VALUES: Final = {
    keys.ZONE: ZONES,
    keys.CAPACITY_TYPE: ("on-demand", "spot"),
    keys.ARCH: ("amd64", "arm64"),
    keys.FAMILY: ("c5", "m5", "m6g", "r5"),
    keys.SIZE: ("large", "xlarge", "2xlarge"),
    keys.INSTANCE_TYPE: ("m5.large", "m5.2xlarge", "c5.xlarge", "m6g.xlarge"),
    keys.CATEGORY: ("c", "m", "r"),
    keys.TEAM: keys.TEAMS,
    keys.RACK: keys.RACKS,
}
_NUMBERS: Final = {keys.CPU: (1, 2, 4, 8), keys.GENERATION: (3, 5, 6), keys.LEVEL: (1, 2, 3)}
_CUSTOM: Final = (keys.TEAM, keys.RACK, keys.LEVEL)
_PLAIN: Final = (keys.ZONE, keys.ZONE, keys.ARCH, keys.FAMILY, keys.SIZE, keys.INSTANCE_TYPE)
_OLD: Final = {stable: older for older, stable in keys.OLDER.items()}


def _key(dice: Dice, *, numbers: bool) -> str:
    pool = list(_PLAIN)
    if numbers:
        pool += [keys.CPU, keys.GENERATION, keys.CATEGORY]
    if "capacity_type" in dice.on:
        pool += [keys.CAPACITY_TYPE, keys.CAPACITY_TYPE]
    if "custom_keys" in dice.on:
        pool += [keys.TEAM, keys.RACK, *([keys.LEVEL] if numbers else [])]
    return dice.one(pool)


def _named(dice: Dice, key: str) -> str:
    return _OLD[key] if key in _OLD and dice.has("aliases", 0.3) else key


def expression(dice: Dice) -> Json:
    """Return one requirement on a node's labels, any operator."""
    key = _key(dice, numbers=True)
    if key in _NUMBERS:
        operator = dice.one(("Gt", "Lt", "Gt", "Lt", "Exists", "In"))
        values = [str(dice.one(_NUMBERS[key]))]
        return {"key": key, "operator": operator, **_listed(operator, values)}
    operator = dice.one(("In", "In", "In", "NotIn", "NotIn", "Exists"))
    if key in _CUSTOM:
        operator = dice.one(("In", "NotIn", "Exists", "DoesNotExist"))
    values = dice.some(_VALUES[key], 2)
    return {"key": _named(dice, key), "operator": operator, **_listed(operator, values)}


def _listed(operator: str, values: list[str]) -> Json:
    return {} if operator in ("Exists", "DoesNotExist") else {"values": values}


def _term(dice: Dice) -> Json:
    return {"matchExpressions": [expression(dice) for _ in range(dice.upto(1, 2))]}


def node_wishes(dice: Dice) -> Json:
    """Return `nodeSelector` and `affinity.nodeAffinity` of a pod, in a spec."""
    spec: Json = {}
    if dice.has("node_selector", 0.4):
        key = _key(dice, numbers=False)
        spec["nodeSelector"] = {_named(dice, key): dice.one(_VALUES[key])}
    affinity: Json = {}
    if dice.has("node_affinity", 0.5):
        terms = [_term(dice) for _ in range(dice.one((1, 1, 2, 3)))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.has("preferred", 0.5):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.upto(1, 100), "preference": _term(dice)} for _ in range(dice.upto(1, 2))
        ]
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return spec


def tolerations(dice: Dice) -> list[Json]:
    """Return what a pod bears of the taints of this world."""
    found: list[Json] = []
    if "taints" in dice.on or "startup_taints" in dice.on or "unfit_nodes" in dice.on:
        found += [_toleration(dice, taint) for taint in TAINTS if dice.luck(0.3)]
        if dice.luck(0.05):
            found.append({"operator": "Exists"})
    if dice.has("soft_taints", 0.3):
        found.append({"key": SOFT_TAINT["key"], "operator": "Exists"})
    return found


def _toleration(dice: Dice, taint: Json) -> Json:
    way = dice.upto(0, 3)
    if way == 0:
        return {"key": taint["key"], "operator": "Exists"}
    equal = {"key": taint["key"], "operator": "Equal", "value": taint.get("value", "")}
    if way == 1:
        return equal
    return {
        **equal,
        "effect": taint["effect"] if way == 2 else dice.one(("NoSchedule", "NoExecute")),
    }


def taints(dice: Dice, chance: float) -> list[Json]:
    """Return taints of a node or provisioner, none twice."""
    found: list[Json] = []
    if dice.has("taints", chance):
        found.append(dict(dice.one(TAINTS)))
    if dice.has("soft_taints", chance):
        found.append(dict(SOFT_TAINT))
    return found


def containers(dice: Dice) -> Json:
    """Return the containers of a pod with their requests, sidecars and overhead among them."""
    requests = {
        "cpu": dice.one(("50m", "100m", "250m", "500m", "500m", "1", "1500m", "3")),
        "memory": dice.one(("64Mi", "256Mi", "512Mi", "1Gi", "2Gi", "6Gi")),
    }
    resources: Json = {"requests": requests}
    if dice.has("extended", 0.4):
        name = dice.one(("nvidia.com/gpu", "nvidia.com/gpu", "aws.amazon.com/neuron"))
        resources["limits"] = {name: dice.one(("1", "1", "2"))}
    spec: Json = {"containers": [{"name": "main", "resources": resources}]}
    if dice.has("odd_requests", 0.6):
        _make_odd(dice, spec)
    if dice.has("host_ports", 0.5):
        spec["containers"][0]["ports"] = [_port(dice) for _ in range(dice.upto(1, 2))]
        if dice.luck(0.1):
            spec["hostNetwork"] = True
            spec["containers"][0]["ports"] = [{"containerPort": 8080}]
    return spec


def _make_odd(dice: Dice, spec: Json) -> None:
    way = dice.upto(0, 5)
    if way == 0:
        spec["containers"].append({"name": "limited", "resources": {"limits": {"cpu": "300m"}}})
    elif way == 1:
        spec["initContainers"] = [
            {"name": "first", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            {
                "name": "beside",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "200m", "memory": "100Mi"}},
            },
            {"name": "last", "resources": {"requests": {"cpu": "1200m"}}},
        ]
    elif way == 2:
        spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    elif way == 3:
        spec["resources"] = {"requests": {"cpu": "2"}, "limits": {"memory": "3Gi"}}
    elif way == 4:
        spec["containers"][0]["resources"]["requests"]["ephemeral-storage"] = dice.one(
            ("1Gi", "12Gi", "16Gi")
        )
    else:
        spec["containers"][0]["resources"]["requests"] = {"memory": "0.5e9"}


def _port(dice: Dice) -> Json:
    port: Json = {"containerPort": 8080, "hostPort": dice.one((8080, 8080, 9090))}
    if dice.luck(0.2):
        port["protocol"] = "UDP"
    if dice.luck(0.3):
        port["hostIP"] = dice.one(("10.0.0.1", "10.0.0.2", "0.0.0.0"))
    return port
