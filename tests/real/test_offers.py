"""What machines offer to pods is what was planned: nodeadm and the kubelet judge.

Machines of Amazon Linux 2023 are started as nodeadm says, those of Bottlerocket and Amazon Linux 2
as their documents say (user_data.py).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import tomli_w

from shared.instance_types.ami_families import FAMILIES, with_user_data_settings
from shared.instance_types.ami_families.kubelet_flags import settable_labels
from shared.instance_types.apply_settings import with_pod_limit
from shared.instance_types.catalog import embedded_catalog
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.model.ec2.instance_types import InstanceType
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.nodes.launch.node_taints import kubelet_taints
from shared.planning.rules.provisioner_offerings import as_configured, node_labels
from tests.real.judges import kubelets_offer, nodeadm_boots
from tests.real.test_user_data import JOININGS
from tests.real.user_data import Boot, Instance, boot_of
from tests.unit.instance_types.ami_families.joinings import joining
from tests.unit.manifests.documents import CLASS_REF, node_class, node_pool

PAIRS: Final = 200
TYPES: Final = ("c6g.medium", "m5.large", "t3.medium", "c5.2xlarge", "r5.4xlarge", "m5.24xlarge")
IMAGES: Final = {
    "AL2023": "al2023@latest",
    "Bottlerocket": "bottlerocket@latest",
    "AL2": "al2@latest",
}
AMOUNTS: Final = {
    "cpu": ("0", "100m", "0.5", "1"),
    "memory": ("0", "255Mi", "1Gi", "1500M"),
    "ephemeral-storage": ("1Gi", "3G"),
}
THRESHOLDS: Final = {
    "memory.available": ("100Mi", "750Mi", "5%", "0%"),
    "nodefs.available": ("10%", "15%", "2Gi", "100%"),
    "nodefs.inodesFree": ("5%",),
}
FIELDS: Final = ("maxPods", "podsPerCore", "kubeReserved", "systemReserved", "evictionHard")
SETTINGS: Final = {
    "maxPods": "max-pods",
    "kubeReserved": "kube-reserved",
    "systemReserved": "system-reserved",
    "evictionHard": "eviction-hard",
}
KEYS: Final = ("rack", "example.com/row", "team")
EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine as it was planned, and what it is told."""

    pool: Provisioner
    kind: InstanceType
    instance: Instance
    user_data: str
    taints_by_flag: bool

    @property
    def planned(self) -> dict[str, Any]:
        """What was planned, in words of a Node."""
        offered = as_configured(self.pool, self.kind).allocatable
        return {
            **{name: offered[name] for name in AMOUNTS},
            "pods": offered["pods"],
            "labels": settable_labels(node_labels(self.pool)),
        }


def some(dice: Random, choices: dict[str, tuple[str, ...]]) -> dict[str, str]:
    names = [name for name in choices if dice.random() < 0.5]
    return {name: dice.choice(choices[name]) for name in names}


def drawn_config(dice: Random, family: str) -> dict[str, Any]:
    """Return settings in the words of a kubelet's configuration, some of them."""
    found: dict[str, Any] = {
        "maxPods": dice.choice((5, 29, 110, 250)),
        "podsPerCore": dice.choice((4, 10)),
        "kubeReserved": some(dice, AMOUNTS),
        "systemReserved": some(dice, AMOUNTS),
        "evictionHard": some(dice, THRESHOLDS),
    }
    if family == "Bottlerocket":
        del found["podsPerCore"]
        # Its settings take no threshold of all.
        hard = found["evictionHard"]
        found["evictionHard"] = {key: text for key, text in hard.items() if text != "100%"}
    return {name: value for name, value in found.items() if value and dice.random() < 0.4}


def drawn_taints(dice: Random) -> list[dict[str, str]]:
    return [
        {"key": key, "value": dice.choice(("", "a", "b")), "effect": dice.choice(EFFECTS)}
        for key in KEYS
        if dice.random() < 0.3
    ]


def drawn_flags(dice: Random) -> list[str]:
    flags = []
    for name, value in drawn_config(dice, "").items():
        sign = "<" if name == "evictionHard" else "="
        flag = {"maxPods": "max-pods", "podsPerCore": "pods-per-core"}.get(name)
        flag = flag or SETTINGS[name]
        text = str(value)
        if isinstance(value, dict):
            text = ",".join(f"{key}{sign}{amount}" for key, amount in value.items())
        if dice.random() < 0.5:
            flags.append(f"--{flag}={text}")
    labels = some(dice, dict.fromkeys(KEYS, ("1", "x")))
    if labels:
        flags.append("--node-labels=" + ",".join(f"{k}={v}" for k, v in labels.items()))
    if taints := drawn_taints(dice):
        written = (f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in taints)
        flags.append("--register-with-taints=" + ",".join(written))
    return flags


def node_config(dice: Random, flags: Sequence[str]) -> str:
    kubelet: dict[str, Any] = {"config": drawn_config(dice, "AL2023")}
    if taints := drawn_taints(dice):
        kubelet["config"]["registerWithTaints"] = taints
    if flags:
        kubelet["flags"] = list(flags)
    spec = {"kubelet": kubelet}
    return json.dumps({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})


def drawn_user_data(dice: Random, family: str) -> tuple[str, bool]:
    """Return user data, and whether it names taints by a flag."""
    flags = drawn_flags(dice) if family != "Bottlerocket" and dice.random() < 0.5 else []
    by_flag = any(flag.startswith("--register") for flag in flags)
    if family == "AL2":
        call = "/etc/eks/bootstrap.sh test --kubelet-extra-args"
        return f"#!/bin/bash\n{call} '{' '.join(flags)}'\n", by_flag
    if family == "AL2023":
        first, second = node_config(dice, flags), node_config(dice, [])
        if dice.random() < 0.5:
            return first, by_flag
        parts = [
            f"--B\nContent-Type: application/node.eks.aws\n\n{text}\n" for text in (first, second)
        ]
        head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n'
        return f"{head}{''.join(parts)}--B--\n", by_flag
    drawn = drawn_config(dice, family)
    settings: dict[str, Any] = {SETTINGS[name]: value for name, value in drawn.items()}
    settings["node-labels"] = some(dice, dict.fromkeys(KEYS, ("1", "x")))
    for taint in drawn_taints(dice):
        entries = settings.setdefault("node-taints", {}).setdefault(taint["key"], [])
        entries.append(f"{taint['value']}:{taint['effect']}")
    return tomli_w.dumps({"settings": {"kubernetes": settings}}), False


def drawn(dice: Random, number: int, family: str) -> Machine:
    """Return a machine of a pair of user data and `spec.kubelet`, with labels and taints."""
    custom, by_flag = drawn_user_data(dice, family)
    config = drawn_config(dice, family)
    config.pop("podsPerCore", None) if family == "Bottlerocket" else None
    made = node_class(amiSelectorTerms=[{"alias": IMAGES[family]}], userData=custom, kubelet=config)
    labels = some(dice, dict.fromkeys(KEYS, ("1", "x")))
    pool = node_pool({"nodeClassRef": CLASS_REF, "taints": drawn_taints(dice)}, {"labels": labels})
    read = with_user_data_settings(decode_node_pool(pool, {"nodes": made}))
    assert not [text for text in read.warnings if "not read" in text]
    kind = embedded_catalog().get(dice.choice(TYPES))
    assert kind is not None
    instance = Instance(
        id=f"i-{number}",
        zone="us-east-1a",
        dns_name=f"node-{number}",
        cores=kind.capacity["cpu"] // 1000,
        pods=kind.capacity["pods"],
    )
    told = joining(
        with_pod_limit(read.kubelet, kind),
        labels=node_labels(read),
        taints=kubelet_taints(read),
        instance_store=read.template.instance_store,
    )
    text = FAMILIES[family].user_data(told, read.template.user_data)
    return Machine(pool=read, kind=kind, instance=instance, user_data=text, taints_by_flag=by_flag)


def capacity_of(kind: InstanceType) -> dict[str, str]:
    return Resources.from_mapping({name: kind.capacity[name] for name in AMOUNTS}).to_quantities()


def shown(said: dict[str, Any], machine: Machine) -> dict[str, Any]:
    """Return what a kubelet would show, in the words of what was planned."""
    assert not said["error"], (said["error"], machine.user_data)
    offered = Resources.parse(said["allocatable"])
    per_core = said["podsPerCore"] * machine.instance.cores
    return {
        **{name: offered[name] for name in AMOUNTS},
        "pods": min(said["maxPods"], per_core) if per_core else said["maxPods"],
        "labels": said["labels"] or {},
    }


@pytest.mark.parametrize("family", IMAGES)
def test_machines_offer_what_was_planned(
    program: Path, nodeadm: Path, tmp_path: Path, family: str
) -> None:
    machines = [drawn(Random(f"{family} {number}"), number, family) for number in range(PAIRS)]
    if family == "AL2023":
        asked = [(one.user_data, one.kind.name, one.instance) for one in machines]
        boots = nodeadm_boots(nodeadm, tmp_path, asked)
    else:
        boots = [boot_of(one.user_data.encode(), one.instance) for one in machines]
    started = [(boot, capacity_of(one.kind)) for boot, one in zip(boots, machines, strict=True)]
    for machine, said in zip(machines, kubelets_offer(program, tmp_path, started), strict=True):
        assert shown(said, machine) == machine.planned, machine.user_data
        taints = {(t["key"], t["effect"]): t.get("value", "") for t in said["taints"] or ()}
        wanted = {(t.key, t.effect.value): t.value for t in kubelet_taints(machine.pool)}
        if machine.taints_by_flag:
            # These stand in place of all others, which the Node has from its maker; so it has the
            # value that the NodePool gives a taint.
            assert taints.keys() <= wanted.keys()
        else:
            assert taints == wanted


def comparable(boot: Boot, like: Boot) -> dict[str, Any]:
    """Return the configuration of a machine as far as another one has it."""
    return {name: boot.config.get(name) for name in like.config}


def test_nodeadm_is_retold(nodeadm: Path, tmp_path: Path) -> None:
    instance = Instance(id="i-0", zone="us-east-1a", dns_name="node-0", cores=2, pods=29)
    told = [
        (FAMILIES["AL2023"].user_data(one), "m5.large", instance)
        for name, one in JOININGS.items()
        if name != "no-network"
    ]
    dice = Random("retold")
    for number in range(PAIRS):
        machine = drawn(dice, number, "AL2023")
        told.append((machine.user_data, machine.kind.name, machine.instance))
    for (text, _, machine_of), boot in zip(
        told, nodeadm_boots(nodeadm, tmp_path, told), strict=True
    ):
        retold = boot_of(text.encode(), machine_of)
        assert comparable(boot, retold) == dict(retold.config), text
        assert [flag for flag in retold.flags if flag not in boot.flags] == [], text
