"""What user data sets on a node by itself: amounts of its kubelet, labels and taints.

Source: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ and
https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/ (2026-11).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shared.ami_families.kubelet_flags import allowed
from shared.model import labels as keys
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.provisioner import KubeletConfiguration
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Resources

_NUMBERS: Final = ("maxPods", "podsPerCore")
_RESERVATIONS: Final = ("kubeReserved", "systemReserved")
_THRESHOLDS: Final = "evictionHard"
_TAINTS: Final = "registerWithTaints"
_CORES: Final = "reservedSystemCPUs"
_FLAGS: Final = {
    "--max-pods": "maxPods",
    "--pods-per-core": "podsPerCore",
    "--kube-reserved": "kubeReserved",
    "--system-reserved": "systemReserved",
    "--eviction-hard": _THRESHOLDS,
    "--node-labels": "",
    "--register-with-taints": _TAINTS,
    "--reserved-cpus": _CORES,
}
# What may be reserved, and of which thresholds something is taken from pods.
# Source: parseResourceList of https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubelet/app/server.go
# and hardEvictionReservation of .../pkg/kubelet/cm/helpers.go (2026-11).
_RESERVABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, "pid")
_SIGNALS: Final = ("memory.available", "nodefs.available")
_AMOUNT: Final = re.compile(r"(\d{1,2}(\.\d{1,9})?|100(\.0{1,9})?)%|\d{1,15}([KMGTPE]i|[kMGTPE])?")
_DIGITS: Final = re.compile(r"\d{1,9}")
_MOST: Final = 2**31 - 1
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
# What a shell puts something else for.
_OPEN: Final = re.compile(r"[$`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """What user data sets on a node.

    Attributes:
        below: Of its kubelet, where Dovetail's own part says nothing else.
        above: Of its kubelet, whatever Dovetail's own part says.
        instance_store: Whether the instance's own NVMe disks become what pods write to.
        unread: Places that set something that is not read, without what they say.
    """

    below: KubeletConfiguration = KubeletConfiguration()
    above: KubeletConfiguration = KubeletConfiguration()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    instance_store: bool = False
    unread: tuple[str, ...] = ()


class SettingsReader:
    """Collects what the parts of user data set.

    Attributes:
        instance_store: As in what is found.
    """

    def __init__(self) -> None:
        self.instance_store = False
        self._below: dict[str, Any] = {}
        self._above: dict[str, Any] = {}
        self._labels: dict[str, str] = {}
        self._taints: dict[tuple[str, str], Taint] = {}
        self._taints_by_flag: dict[tuple[str, str], Taint] = {}
        self._unread: dict[str, None] = {}

    @property
    def found(self) -> NodeSettings:
        """All that was read."""
        return NodeSettings(
            below=_configuration(self._below),
            above=_configuration(self._above),
            labels=dict(sorted(self._labels.items())),
            taints=tuple(sorted((self._taints_by_flag or self._taints).values())),
            instance_store=self.instance_store,
            unread=tuple(self._unread),
        )

    def leave(self, where: str) -> None:
        """Note a place that is not read."""
        self._unread[where] = None

    def config(self, config: Mapping[str, Any], where: str) -> None:
        """Take settings in the words of a kubelet's configuration; of maps a later entry wins."""
        for name, value in config.items():
            place = f"{where}.{name}"
            if name == _TAINTS:
                # A later list replaces an earlier one.
                self._taints.clear()
                for entry in value if isinstance(value, list) else ({},):
                    said = entry if isinstance(entry, Mapping) else {}
                    self._taint(self._taints, said, place)
            elif name in _NUMBERS:
                self._number(self._below, name, value, place)
            elif name == _CORES:
                self._number(self._below, name, _cores(value), place)
            elif name in _RESERVATIONS or name == _THRESHOLDS:
                entries = value if isinstance(value, Mapping) else {"": value}
                if found := self._entries(name, entries, place):
                    self._below[name] = {**self._below.get(name, {}), **found}

    def flags(self, words: Iterable[str], where: str) -> None:
        """Take flags of a kubelet, each a word with its value or two words.

        A flag replaces a whole map of the configuration, with all that it does not name.

        Source: Set of https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/component-base/cli/flag/map_string_string.go
        (2026-11).
        """
        for flag, value in _pairs(words):
            name, place = _FLAGS.get(flag), f"{where}{flag}"
            if name is None:
                continue
            if _OPEN.search(value):
                self.leave(place)
            elif not name:
                self.labels(_entries(value, "="), place)
            elif name == _TAINTS:
                # It replaces those of an earlier flag, and all of the configuration.
                self._taints_by_flag.clear()
                self._written_taints(self._taints_by_flag, value.split(","), place)
            elif name in _NUMBERS:
                number = int(value) if _DIGITS.fullmatch(value) else None
                self._number(self._above, name, number, place)
            elif name == _CORES:
                self._number(self._above, name, _cores(value), place)
            else:
                sign = "<" if name == _THRESHOLDS else "="
                rest = dict.fromkeys(*_LEFT_OUT[name])
                self._above[name] = rest | self._entries(name, _entries(value, sign), place)

    def labels(self, labels: Mapping[str, object], where: str) -> None:
        """Take labels of the node, without those that each node has anyway."""
        for key, value in labels.items():
            if keys.normalize(key) in keys.WELL_KNOWN:
                continue
            good = isinstance(value, str) and keys.is_key(key) and keys.is_value(value)
            if good and allowed({key: ""}) and not keys.is_restricted(key):
                self._labels[key] = str(value)
            else:
                self.leave(f"{where}: {key}")

    def taints(self, entries: Iterable[object], where: str) -> None:
        """Take taints of the node, each written as `key=value:effect`."""
        self._written_taints(self._taints, entries, where)

    def _written_taints(
        self, into: dict[tuple[str, str], Taint], entries: Iterable[object], where: str
    ) -> None:
        for entry in entries:
            said, _, effect = str(entry).rpartition(":")
            key, _, value = said.partition("=")
            self._taint(into, {"key": key, "value": value, "effect": effect}, where)

    def _taint(
        self, into: dict[tuple[str, str], Taint], said: Mapping[str, Any], where: str
    ) -> None:
        """Take one taint, unless it is one that goes while a node starts."""
        key, value, effect = said.get("key"), said.get("value") or "", said.get("effect")
        good = isinstance(key, str) and isinstance(value, str) and keys.is_key(key)
        if not good or not keys.is_value(value) or effect not in set(Effect):
            self.leave(where)
        elif not keys.is_ephemeral(str(key)):
            taint = Taint(key=str(key), value=value, effect=Effect(effect))
            into[taint.key, taint.effect] = taint

    def _number(self, into: dict[str, Any], name: str, value: object, where: str) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
            into[name] = value
        else:
            self.leave(where)

    def _entries(self, name: str, entries: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return what of a map of amounts is counted."""
        counted = _SIGNALS if name == _THRESHOLDS else _RESERVABLE
        found = {}
        for key, said in entries.items():
            if key in counted and _is_amount(name, key, said):
                found[key] = str(said)
            elif key in counted or name != _THRESHOLDS:
                self.leave(f"{where}.{key}" if key else where)
        return found


# What a flag sets that does not name it.
_LEFT_OUT: Final = {
    **dict.fromkeys(_RESERVATIONS, (_RESERVABLE[:3], "0")),
    _THRESHOLDS: (_SIGNALS, "0%"),
}


def whole_maps(kubelet: KubeletConfiguration) -> dict[str, Any]:
    """Return the maps of a kubelet's settings as flags set them, with all that they leave out."""
    zeros, none = (dict.fromkeys(*_LEFT_OUT[name]) for name in ("kubeReserved", _THRESHOLDS))
    reserved = kubelet.kube_reserved
    left_out = Resources(tuple(sorted((name, int(zero)) for name, zero in zeros.items())))
    hard = kubelet.eviction_hard
    return {
        "kube_reserved": None if reserved is None else _joined(left_out, reserved),
        "eviction_hard": {**none, **hard} if hard else hard,
    }


def over(lower: KubeletConfiguration, upper: KubeletConfiguration) -> dict[str, Any]:
    """Return the fields of a kubelet's settings that user data may set, the upper ones winning."""
    reserved = [settings.kube_reserved for settings in (lower, upper)]
    return {
        "max_pods": lower.max_pods if upper.max_pods is None else upper.max_pods,
        "reserved_cpus": lower.reserved_cpus
        if upper.reserved_cpus is None
        else upper.reserved_cpus,
        "pods_per_core": lower.pods_per_core
        if upper.pods_per_core is None
        else upper.pods_per_core,
        "kube_reserved": None if reserved == [None, None] else _joined(*reserved),
        "system_reserved": _joined(lower.system_reserved, upper.system_reserved),
        "eviction_hard": {**lower.eviction_hard, **upper.eviction_hard},
    }


def _joined(lower: Resources | None, upper: Resources | None) -> Resources:
    amounts = {**dict((lower or Resources()).items), **dict((upper or Resources()).items)}
    # Zeros are kept: they replace what the image would reserve.
    return Resources(tuple(sorted(amounts.items())))


def _configuration(said: Mapping[str, Any]) -> KubeletConfiguration:
    kube, system = (said.get(name) for name in _RESERVATIONS)
    return KubeletConfiguration(
        max_pods=said.get("maxPods"),
        reserved_cpus=said.get(_CORES),
        pods_per_core=said.get("podsPerCore"),
        kube_reserved=None if kube is None else _amounts(kube),
        system_reserved=_amounts(system or {}),
        eviction_hard=said.get(_THRESHOLDS, {}),
    )


def _amounts(said: Mapping[str, str]) -> Resources:
    found = {name: Resources.parse({name: text})[name] for name, text in said.items()}
    return Resources(tuple(sorted(found.items())))


def _cores(said: object) -> int | None:
    """Return how many cores a list such as `0-3,8` names, None where it is no such list.

    Source: Parse of https://github.com/kubernetes/utils/blob/master/cpuset/cpuset.go (2026-11).
    """
    found: set[int] = set()
    for part in said.split(",") if isinstance(said, str) and said else ():
        written = _RANGE.fullmatch(part)
        first, last = written.groups() if written else ("1", "0")
        cores = range(int(first), int(last or first) + 1)
        if not cores:
            return None
        found.update(cores)
    return len(found) if isinstance(said, str) else None


def _is_amount(name: str, key: str, said: object) -> bool:
    if name == _THRESHOLDS:
        return bool(_AMOUNT.fullmatch(str(said)))
    try:
        return isinstance(said, (str, int, float)) and Resources.parse({key: said})[key] >= 0
    except ValueError:
        return False


def _entries(text: str, sign: str) -> dict[str, str]:
    """Return the entries of a flag's map, as `cpu=1,memory=1Gi`."""
    parts = (entry.partition(sign) for entry in text.split(",") if entry.strip())
    return {key.strip(): value.strip() for key, _, value in parts}


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield flags with their values; a flag without a sign of equality takes the next word."""
    flag = ""
    for word in words:
        if not word.startswith("-"):
            yield flag, word
            flag = ""
            continue
        flag, sign, value = word.partition("=")
        if sign:
            yield flag, value
            flag = ""
