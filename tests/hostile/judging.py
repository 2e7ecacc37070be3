"""What machines are told at boot, read back as their images read it."""

import email
import re
import shlex
import subprocess
from collections.abc import Mapping
from email.policy import compat32
from typing import Any, Final

from shared.instance_types.ami_families import BootstrapOptions
from shared.model.kubernetes.taints import Effect, Taint
from tests.real.user_data import Boot, Instance, boot_of

INSTANCE: Final = Instance(id="i-0", zone="us-east-1a", dns_name="node-0", cores=2, pods=29)
_SCRIPT: Final = "/etc/eks/bootstrap.sh"
# systemd splits at blanks, and interprets quotes, backslashes, percent signs and dollars itself;
# a flag may contain none of them.
FLAG: Final = re.compile(r"--[a-z-]+=([A-Za-z0-9._/:=,<+-]|%(?=,|$))*")
# A kubelet refuses labels of these domains but for a few, which joining leaves out.
_FOREIGN: Final = re.compile(r"([^/]+\.)?(kubernetes|k8s)\.io/")
_OWN: Final = re.compile(r"([^/]+\.)?(kubelet|node)\.kubernetes\.io/")


def judge(family: str, text: str, joining: BootstrapOptions) -> None:
    """Assert that a machine of this family is told exactly what is meant.

    Args:
        family: Of the image.
        text: Its user data.
        joining: What was to be told.
    """
    boot = boot_of(text.encode(), INSTANCE)
    assert (boot.cluster, boot.endpoint) == (joining.cluster, joining.endpoint)
    flags = boot.flags[2:]
    assert all(map(FLAG.fullmatch, flags)), flags
    wanted = {key: value for key, value in joining.labels.items() if _may_register(key)}
    assert _labels(flags) == wanted
    assert _taints(boot, flags) == sorted(joining.taints)
    if family in ("AL2", "Ubuntu"):
        *_, mime_part = email.message_from_string(text, policy=compat32).walk()
        lines = str(mime_part.get_payload()).splitlines()
        # One line, so that what bootstrap.sh writes into a unit is one line, too.
        assert [line.partition(" ")[0] for line in lines] == ["#!/bin/bash", "exec", _SCRIPT]
        assert tuple(shlex.split(lines[-1])[-1].split(" ")) == flags


def bash_words(texts: list[str]) -> list[list[str]]:
    """Return the words that bash makes of the last line of each script, in one process."""
    lines = [
        line.replace(_SCRIPT, "printf '%s\\0'", 1) + "; printf '\\1'"
        for text in texts
        for line in text.splitlines()
        if line.startswith(_SCRIPT)
    ]
    script = "\n".join(lines)
    ran = subprocess.run(["bash", "-eu"], input=script.encode(), capture_output=True, check=True)
    return [part.split("\0")[:-1] for part in ran.stdout.decode().split("\1")[:-1]]


def meant_words(text: str) -> list[str]:
    """Return the words of the call in a script as POSIX reads them."""
    (line,) = [value for value in text.splitlines() if value.startswith(_SCRIPT)]
    return shlex.split(line)[1:]


def _may_register(key: str) -> bool:
    known = ("hostname", "arch", "os")
    return (
        not _FOREIGN.match(key)
        or bool(_OWN.match(key))
        or key in {f"kubernetes.io/{value}" for value in known}
        or key in {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}
    )


def _labels(flags: tuple[str, ...]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for flag in flags:
        if flag.startswith("--node-labels="):
            for pair in filter(None, flag.partition("=")[2].split(",")):
                key, sign, value = pair.partition("=")
                assert sign
                assert key not in found
                found[key] = value
    return found


def _taints(boot: Boot, flags: tuple[str, ...]) -> list[Taint]:
    listed: list[Mapping[str, Any]] = list(boot.config.get("registerWithTaints") or [])
    for flag in flags:
        if flag.startswith("--register-with-taints="):
            for part in filter(None, flag.partition("=")[2].split(",")):
                key, _, rest = part.partition("=")
                value, _, effect = rest.partition(":")
                listed.append({"key": key, "value": value, "effect": effect})
    return sorted(
        Taint(key=entry["key"], value=entry.get("value", ""), effect=Effect(entry["effect"]))
        for entry in listed
    )
