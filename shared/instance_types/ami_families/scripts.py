"""Reads kubelet settings in scripts of user data, as far as possible without a shell."""

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from shared.instance_types.ami_families.node_settings import SettingsReader

BOOTSTRAP: Final = "/etc/eks/bootstrap.sh"
# Lines with these words may change a node's allocatable resources.
_OF_KUBELETS: Final = re.compile(r"kubelet|/etc/eks/|nodeadm|hugepages", re.IGNORECASE)
_ASSIGNED: Final = "KUBELET_EXTRA_ARGS="
_THE_ASSIGNED: Final = frozenset({"$KUBELET_EXTRA_ARGS", "${KUBELET_EXTRA_ARGS}"})
_ENDS: Final = frozenset({"||", "&&", "|", ";", "&", ">", ">>", "2>&1"})
# The kubelet's default of maxPods.
# Source: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ (2026-11).
_MOST_PODS: Final = "110"


def add_unread_lines(text: str, where: str, reader: SettingsReader) -> None:
    """Add the lines of a script or other part that name the kubelet as unread."""
    for place, _ in _lines(text, where):
        reader.add_unread(place)


def read_script(text: str, where: str, reader: SettingsReader) -> None:
    """Read the kubelet settings that a script passes to the bootstrap script of its image.

    A call with literal arguments is read, and so is KUBELET_EXTRA_ARGS; other lines that name the
    kubelet are added as unread.

    Source: https://github.com/awslabs/amazon-eks-ami (templates/al2/runtime/bootstrap.sh, 2025-11).
    """
    extra = ""
    for place, line in _lines(text, where):
        words = _words(line)
        if words[:1] == ["export"]:
            words = words[1:]
        if BOOTSTRAP in words[:2]:
            said = _arguments(words[words.index(BOOTSTRAP) + 1 :])
            given = said.get("--kubelet-extra-args", "")
            _call(said, extra if given in _THE_ASSIGNED else given, place, reader)
        elif len(words) == 1 and words[0].startswith(_ASSIGNED):
            extra = words[0].removeprefix(_ASSIGNED)
            reader.add_flags(_words(extra), f"{place}: ")
        else:
            reader.add_unread(place)


def _call(said: Mapping[str, str], extra: str, place: str, reader: SettingsReader) -> None:
    # By default, the script sets maxPods to the pods that the instance type has addresses for.
    most = [f"--max-pods={_MOST_PODS}"] if said.get("--use-max-pods") == "false" else []
    reader.add_flags([*most, *_words(extra)], f"{place}: ")
    reader.instance_store |= said.get("--local-disks") == "raid0"


def _lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that name the kubelet, continuation lines joined, each with its place."""
    prefix = f"{where}, " if where else ""
    began, joined = 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        began = began or number
        joined += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        bare = joined.strip()
        if _OF_KUBELETS.search(bare) and not bare.startswith("#"):
            yield f"{prefix}line {began}", bare
        began, joined = 0, ""


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def _arguments(words: list[str]) -> dict[str, str]:
    """Return the options of the call, each with the next word as its value."""
    end = next((number for number, word in enumerate(words) if word in _ENDS), len(words))
    pairs = itertools.pairwise(words[:end])
    return {name: value for name, value in pairs if name.startswith("--")}
