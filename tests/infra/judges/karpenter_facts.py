"""Karpenter's generated tables beside the embedded catalogue: what machines of each type have.

They are read as text from its Go module, whose hash is locked here; nothing of it is run.

Source: https://github.com/aws/karpenter-provider-aws (pkg/providers/instancetype/zz_generated.*.go,
v1.14.1, of 2026-05).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shared.instance_types.branch_interfaces import branch_interfaces_of
from shared.instance_types.catalog import embedded_text
from shared.instance_types.document import TypeRow
from shared.instance_types.pod_addresses import eni_limited_pods
from shared.model import labels as keys
from tests.infra.judges.verdicts import Verdict
from tests.real.build import module_texts

_MODULE: Final = "github.com/aws/karpenter-provider-aws"
_VERSION: Final = "v1.14.1"
_CHECKSUM: Final = "h1:WGtIQTQcxpElYMdWfWuPwaF2+9muR+hYhPZsTtoY8Gs="
_FOLDER: Final = "pkg/providers/instancetype"
_PODS, _HYPERVISOR, _BANDWIDTH, _BRANCHES = "pods", "hypervisor", "bandwidth", "pod-eni"
_ROUNDED_MBPS: Final = 10
Facts = Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where the two may say otherwise.

    Attributes:
        fact: One of those that are compared.
        covers: Whether it is so for a type: its name, our value, theirs; None where one is silent.
        reason: Why that stays.
    """

    fact: str
    covers: Callable[[str, str | int | None, str | int | None], bool]
    reason: str


_I7IE: Final = frozenset({"i7ie.48xlarge", "i7ie.metal-48xl"})
_OLD: Final = frozenset({"c3.8xlarge", "i8g.metal-48xl", "r3.8xlarge"})
DIFFERENCES: Final = (
    Difference(
        fact=_BRANCHES,
        covers=lambda _, ours, theirs: _value(ours) < _value(theirs),
        reason="a type that is not listed gets the least of its size: never too many",
    ),
    Difference(
        fact=_PODS,
        covers=lambda name, ours, theirs: name in _I7IE and _value(ours) < _value(theirs),
        reason="the catalogue's source knows 8 interfaces of card 0 and not 15: never too many",
    ),
    Difference(
        fact=_BANDWIDTH,
        covers=lambda _, ours, theirs: ours is not None and theirs is None,
        reason="AWS's page has a word for it, as Moderate; EC2 describes a number",
    ),
    Difference(
        fact=_BANDWIDTH,
        covers=lambda _, ours, theirs: 0 < _value(ours) - _value(theirs) < _ROUNDED_MBPS,
        reason="the page rounds what EC2 describes",
    ),
    Difference(
        fact=_BANDWIDTH,
        covers=lambda name, *_: name in _I7IE,
        reason="EC2 sums two cards of 100 Gigabit up itself, the page has one",
    ),
    Difference(
        fact=_BANDWIDTH,
        covers=lambda name, *_: name in _OLD,
        reason="the page has another figure than what EC2 describes",
    ),
)


def ask() -> Verdict:
    """Compare each fact of each type that both have.

    Raises:
        Problem: If there is no Go, or the module cannot be had.
    """
    _, files = module_texts(_MODULE, _VERSION, _FOLDER, ending=".go", checksum=_CHECKSUM)
    theirs = _limits(files["zz_generated.vpclimits.go"])
    bandwidths = _bandwidths(files["zz_generated.bandwidth.go"])
    asked = 0
    disagreements: list[str] = []
    explained: dict[Difference, list[str]] = {difference: [] for difference in DIFFERENCES}
    for row in json.loads(embedded_text())["types"]:
        name = row["name"]
        if name not in theirs:
            continue
        said = {**theirs[name], **({_BANDWIDTH: bandwidths[name]} if name in bandwidths else {})}
        mine = _ours(row)
        for fact in sorted(mine.keys() | said.keys()):
            asked += 1
            one, other = mine.get(fact), said.get(fact)
            if one == other:
                continue
            reason = _reason(fact, name, one, other)
            if reason is None:
                disagreements.append(f"{name}: {fact} is {one} here and {other} there")
            else:
                explained[reason].append(name)
    for difference, types in explained.items():
        if not types:
            disagreements.append(f"{difference.fact}: nothing differs: {difference.reason}")
    return Verdict(
        version=_VERSION,
        asked=asked,
        disagreements=tuple(disagreements),
        explained=tuple(
            f"{difference.fact} of {len(types)} types: {difference.reason}: {', '.join(types)}"
            for difference, types in explained.items()
            if types
        ),
    )


def _reason(
    fact: str, name: str, ours: str | int | None, theirs: str | int | None
) -> Difference | None:
    return next(
        (one for one in DIFFERENCES if one.fact == fact and one.covers(name, ours, theirs)), None
    )


def _value(fact: str | int | None) -> int:
    return int(fact or 0)


def _ours(row: TypeRow) -> Facts:
    network = row["network"]
    bandwidth = row["labels"].get(keys.INSTANCE_NETWORK_BANDWIDTH)
    return {
        _PODS: eni_limited_pods(network["default_card"], network["addresses"]),
        _HYPERVISOR: row["labels"].get(keys.INSTANCE_HYPERVISOR, ""),
        _BRANCHES: branch_interfaces_of(row),
        **({} if bandwidth is None else {_BANDWIDTH: int(bandwidth)}),
    }


def _limits(text: str) -> Mapping[str, Facts]:
    return {name: dict(_facts(body)) for name, body in _entries(text)}


def _entries(text: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r'^\t"([\w.-]+)": \{$(.*?)^\t\},$', text, re.MULTILINE | re.DOTALL):
        yield found[1], found[2]


def _facts(body: str) -> Iterator[tuple[str, str | int]]:
    cards = [int(found) for found in re.findall(r"MaximumNetworkInterfaces: (\d+)", body)]
    card = cards[_number(body, "DefaultNetworkCardIndex")]
    yield _PODS, eni_limited_pods(card, _number(body, "IPv4PerInterface"))
    hypervisor = re.search(r'\bHypervisor:\s+"(\w*)"', body)
    yield _HYPERVISOR, hypervisor[1] if hypervisor else ""
    with_trunk = re.search(r"\bIsTrunkingCompatible:\s+true", body) is not None
    yield _BRANCHES, _number(body, "BranchInterface") if with_trunk else 0


def _number(body: str, field: str) -> int:
    found = re.search(rf"\b{field}:\s+(\d+)", body)
    assert found is not None, field
    return int(found[1])


def _bandwidths(text: str) -> Mapping[str, int]:
    return {
        name: int(mbps)
        for name, mbps in re.findall(r'^\t+"([\w.-]+)":\s+(\d+),', text, re.MULTILINE)
    }
