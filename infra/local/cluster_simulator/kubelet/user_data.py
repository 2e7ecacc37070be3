"""The flags a kubelet is started with, read from the user data of its instance.

Each AMI family has its own form. Sources (2026-11):
https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/ (NodeConfig; later documents win, flags
are appended), https://bottlerocket.dev/en/os/latest/api/settings/kubernetes/ (TOML) and
https://github.com/awslabs/amazon-eks-ami (templates/al2/runtime/bootstrap.sh).
"""

import base64
import binascii
import contextlib
import email
import gzip
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.policy import compat32
from typing import Any, Final

import yaml

_NODE_CONFIG: Final = "application/node.eks.aws"
_SCRIPT: Final = "text/x-shellscript"
_BOOTSTRAP: Final = "/etc/eks/bootstrap.sh"

Taint = Mapping[str, str]


class UnusableUserDataError(ValueError):
    """The instance would not start a kubelet with this user data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletFlags:
    """What the user data says about the kubelet; empty where it says nothing.

    Attributes:
        labels: Value of `--node-labels`.
        taints: Value of `--register-with-taints`, as in Node.spec.taints.
        endpoint: Address of the API server.
        authority: Base64 of the PEM certificate of the API server's authority.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    endpoint: str = ""
    authority: str = ""


def read_user_data(encoded: str) -> KubeletFlags:
    """Return the flags that user data in base64 leads to.

    User data in none of the known forms belongs to an image of the user's own, which starts its
    kubelet without labels and taints.

    Raises:
        UnusableUserDataError: The form is known, but the instance could not start a kubelet.
    """
    text = _plain(encoded.encode()).decode("utf-8", "replace")
    parts = tuple(_parts(text))
    documents = [part for kind, part in parts if kind == _NODE_CONFIG]
    if documents:
        return _of_node_config(documents)
    for kind, part in parts:
        if kind == _SCRIPT and _BOOTSTRAP in part:
            return _of_bootstrap(part)
    settings = _toml(text).get("settings")
    if isinstance(settings, Mapping) and "kubernetes" in settings:
        return _of_bottlerocket(settings["kubernetes"])
    return KubeletFlags()


def _plain(data: bytes) -> bytes:
    with contextlib.suppress(binascii.Error):
        data = base64.b64decode(data, validate=True)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _parts(text: str) -> Iterable[tuple[str, str]]:
    """Yield content type and text of each MIME part, or of the whole."""
    message = email.message_from_string(text, policy=compat32)
    if message.is_multipart():
        for other_message in message.get_payload():
            payload = (
                other_message.get_payload(decode=True)
                if isinstance(other_message, Message)
                else b""
            )
            if isinstance(other_message, Message) and isinstance(payload, bytes):
                yield other_message.get_content_type(), payload.decode("utf-8", "replace")
    elif text.lstrip().startswith("#!"):
        yield _SCRIPT, text
    elif "node.eks.aws/" in text:
        yield _NODE_CONFIG, text


def _of_node_config(documents: Iterable[str]) -> KubeletFlags:
    spec: dict[str, Any] = {}
    flags: list[str] = []
    for text in documents:
        new = (yaml.load(text, Loader=yaml.CSafeLoader) or {}).get("spec") or {}
        flags += (new.get("kubelet") or {}).get("flags") or []
        spec = _merged(spec, new)
    cluster = spec.get("cluster") or {}
    for key in ("name", "apiServerEndpoint", "certificateAuthority", "cidr"):
        if not cluster.get(key):
            raise UnusableUserDataError(f"NodeConfig: spec.cluster.{key} is missing")
    config = (spec.get("kubelet") or {}).get("config") or {}
    labels, taints = _of_flags(flags)
    return KubeletFlags(
        labels=labels,
        taints=tuple(config.get("registerWithTaints") or ()) if taints is None else taints,
        endpoint=cluster["apiServerEndpoint"],
        authority=cluster["certificateAuthority"],
    )


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(old[key], value)
        for key, value in new.items()
        if isinstance(value, Mapping) and isinstance(old.get(key), Mapping)
    }
    return {**old, **new, **both}


def _of_bootstrap(script: str) -> KubeletFlags:
    line = next(line for line in script.splitlines() if line.startswith(_BOOTSTRAP))
    words = shlex.split(line)[1:]
    options = {
        word: following
        for word, following in zip(words, (*words[1:], ""), strict=True)
        if word.startswith("--")
    }
    labels, taints = _of_flags(options.get("--kubelet-extra-args", "").split())
    return KubeletFlags(
        labels=labels,
        taints=taints or (),
        endpoint=options.get("--apiserver-endpoint", ""),
        authority=options.get("--b64-cluster-ca", ""),
    )


def _of_bottlerocket(settings: Mapping[str, Any]) -> KubeletFlags:
    for key in ("api-server", "cluster-certificate", "cluster-name"):
        if not settings.get(key):
            raise UnusableUserDataError(f"settings.kubernetes.{key} is missing")
    taints = [
        {"key": key, **_value_and_effect(text)}
        for key, found in (settings.get("node-taints") or {}).items()
        for text in ([found] if isinstance(found, str) else found)
    ]
    return KubeletFlags(
        labels=dict(settings.get("node-labels") or {}),
        taints=tuple(taints),
        endpoint=settings["api-server"],
        authority=settings["cluster-certificate"],
    )


def _toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _of_flags(flags: Iterable[str]) -> tuple[dict[str, str], tuple[Taint, ...] | None]:
    """Return labels, and taints or None when no flag names them."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] | None = None
    for flag in flags:
        name, _, value = flag.lstrip("-").partition("=")
        words = [word for word in value.split(",") if word]
        if name == "node-labels":
            labels |= {key: text for key, _, text in (word.partition("=") for word in words)}
        elif name == "register-with-taints":
            taints = tuple(_taint(word) for word in words)
    return labels, taints


def _taint(text: str) -> dict[str, str]:
    key, _, value = text.rpartition(":")[0].partition("=")
    return {"key": key, "value": value, "effect": text.rpartition(":")[2]}


def _value_and_effect(text: str) -> dict[str, str]:
    value, _, effect = text.rpartition(":")
    return {"value": value, "effect": effect}
