"""Reads what user data sets on a node: kubelet settings, labels and taints.

Source: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ and
https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/ (2026-11).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from shared.instance_types.ami_families.kubelet_flags import settable_labels
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
# Resources that may be reserved, and the thresholds that reduce allocatable.
# Source: parseResourceList of https://github.com/kubernetes/kubernetes/blob/v1.36.3/cmd/kubelet/app/server.go
# and hardEvictionReservation of .../pkg/kubelet/cm/helpers.go (2026-11).
_RESERVABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, "pid")
_SIGNALS: Final = ("memory.available", "nodefs.available")
_AMOUNT: Final = re.compile(r"(\d{1,2}(\.\d{1,9})?|100(\.0{1,9})?)%|\d{1,15}([KMGTPE]i|[kMGTPE])?")
_DIGITS: Final = re.compile(r"\d{1,9}")
_MOST: Final = 2**31 - 1
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
# Characters that a shell expands.
_OPEN: Final = re.compile(r"[$`]")


class NodeSettings(Struct, frozen=True, kw_only=True):
    """What user data sets on a node.

    Attributes:
        kubelet_defaults: Kubelet settings that Dovetail's own part of the user data overrides.
        kubelet_overrides: Kubelet settings that override Dovetail's own part of the user data.
        instance_store: Whether pods write to the instance's own NVMe disks.
        unread: Places with a setting that cannot be read, without their content.
    """

    kubelet_defaults: KubeletConfiguration = KubeletConfiguration()
    kubelet_overrides: KubeletConfiguration = KubeletConfiguration()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    instance_store: bool = False
    unread: tuple[str, ...] = ()


class SettingsReader:
    """Collects the settings of all parts of user data.

    Attributes:
        instance_store: As in NodeSettings.
    """

    def __init__(self) -> None:
        self.instance_store = False
        self._defaults: dict[str, Any] = {}
        self._overrides: dict[str, Any] = {}
        self._labels: dict[str, str] = {}
        self._taints: dict[tuple[str, str], Taint] = {}
        self._taints_by_flag: dict[tuple[str, str], Taint] = {}
        self._unread: dict[str, None] = {}

    @property
    def found(self) -> NodeSettings:
        """All settings that were read."""
        return NodeSettings(
            kubelet_defaults=_configuration(self._defaults),
            kubelet_overrides=_configuration(self._overrides),
            labels=dict(sorted(self._labels.items())),
            taints=tuple(sorted((self._taints_by_flag or self._taints).values())),
            instance_store=self.instance_store,
            unread=tuple(self._unread),
        )

    def add_unread(self, where: str) -> None:
        """Add a place that cannot be read."""
        self._unread[where] = None

    def add_config(self, config: Mapping[str, Any], where: str) -> None:
        """Add fields of a kubelet's configuration; in maps a later entry wins."""
        for name, value in config.items():
            place = f"{where}.{name}"
            if name == _TAINTS:
                # A later list replaces an earlier one.
                self._taints.clear()
                for entry in value if isinstance(value, list) else ({},):
                    said = entry if isinstance(entry, Mapping) else {}
                    self._taint(self._taints, said, place)
            elif name in _NUMBERS:
                self._number(self._defaults, name, value, place)
            elif name == _CORES:
                self._number(self._defaults, name, _cores(value), place)
            elif name in _RESERVATIONS or name == _THRESHOLDS:
                entries = value if isinstance(value, Mapping) else {"": value}
                if found := self._entries(name, entries, place):
                    self._defaults[name] = {**self._defaults.get(name, {}), **found}

    def add_flags(self, words: Iterable[str], where: str) -> None:
        """Add flags of a kubelet, each one word with its value or two words.

        A flag replaces a whole map of the configuration, also the keys that it does not name.

        Source: Set of https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/component-base/cli/flag/map_string_string.go
        (2026-11).
        """
        for flag, value in _pairs(words):
            name, place = _FLAGS.get(flag), f"{where}{flag}"
            if name is None:
                continue
            if _OPEN.search(value):
                self.add_unread(place)
            elif not name:
                self.add_labels(_entries(value, "="), place)
            elif name == _TAINTS:
                # It replaces the taints of an earlier flag, and all of the configuration.
                self._taints_by_flag.clear()
                self._written_taints(self._taints_by_flag, value.split(","), place)
            elif name in _NUMBERS:
                number = int(value) if _DIGITS.fullmatch(value) else None
                self._number(self._overrides, name, number, place)
            elif name == _CORES:
                self._number(self._overrides, name, _cores(value), place)
            else:
                sign = "<" if name == _THRESHOLDS else "="
                rest = dict.fromkeys(*_LEFT_OUT[name])
                self._overrides[name] = rest | self._entries(name, _entries(value, sign), place)

    def add_labels(self, labels: Mapping[str, object], where: str) -> None:
        """Add labels of the node, without the well-known labels."""
        for key, value in labels.items():
            if keys.normalize(key) in keys.WELL_KNOWN:
                continue
            good = isinstance(value, str) and keys.is_key(key) and keys.is_value(value)
            if good and settable_labels({key: ""}) and not keys.is_restricted(key):
                self._labels[key] = str(value)
            else:
                self.add_unread(f"{where}: {key}")

    def add_taints(self, entries: Iterable[object], where: str) -> None:
        """Add taints of the node, each written as `key=value:effect`."""
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
        """Add one taint, unless it is expected to be removed while a node starts."""
        key, value, effect = said.get("key"), said.get("value") or "", said.get("effect")
        good = isinstance(key, str) and isinstance(value, str) and keys.is_key(key)
        if not good or not keys.is_value(value) or effect not in set(Effect):
            self.add_unread(where)
        elif not keys.is_ephemeral(str(key)):
            taint = Taint(key=str(key), value=value, effect=Effect(effect))
            into[taint.key, taint.effect] = taint

    def _number(self, into: dict[str, Any], name: str, value: object, where: str) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
            into[name] = value
        else:
            self.add_unread(where)

    def _entries(self, name: str, entries: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the entries of a map of amounts that are counted."""
        counted = _SIGNALS if name == _THRESHOLDS else _RESERVABLE
        found = {}
        for key, said in entries.items():
            if key in counted and _is_amount(name, key, said):
                found[key] = str(said)
            elif key in counted or name != _THRESHOLDS:
                self.add_unread(f"{where}.{key}" if key else where)
        return found


# By map: the keys that a flag resets if it does not name them, and their value then.
_LEFT_OUT: Final = {
    **dict.fromkeys(_RESERVATIONS, (_RESERVABLE[:3], "0")),
    _THRESHOLDS: (_SIGNALS, "0%"),
}


def maps_as_flags_set_them(kubelet: KubeletConfiguration) -> dict[str, Any]:
    """Return the maps of a kubelet's settings as flags set them, omitted keys included."""
    zeros, none = (dict.fromkeys(*_LEFT_OUT[name]) for name in ("kubeReserved", _THRESHOLDS))
    reserved = kubelet.kube_reserved
    left_out = Resources(tuple(sorted((name, int(zero)) for name, zero in zeros.items())))
    hard = kubelet.eviction_hard
    return {
        "kube_reserved": None if reserved is None else _joined(left_out, reserved),
        "eviction_hard": {**none, **hard} if hard else hard,
    }


def merged_kubelet_settings(
    lower: KubeletConfiguration, upper: KubeletConfiguration
) -> dict[str, Any]:
    """Return the kubelet settings that user data may set, merged; `upper` wins."""
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
    """Return the number of cores in a list such as `0-3,8`, None where it is no such list.

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
    """Yield flags with their values; a flag without `=` has the next word as its value."""
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
