"""User data in several parts, as cloud-init reads it.

Source: https://cloudinit.readthedocs.io/en/latest/explanation/format.html (2026-08).
"""

import base64
import email
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.errors import CloseBoundaryNotFoundDefect, MissingHeaderBodySeparatorDefect
from email.message import Message
from email.policy import compat32
from typing import Any, Final

import yaml
from msgspec import Struct

from shared.instance_types.ami_families.family import user_data_error
from shared.model.values import replace

SCRIPT: Final = "text/x-shellscript"
CLOUD_CONFIG: Final = "text/cloud-config"
NODE_CONFIG: Final = "application/node.eks.aws"
_MARKS: Final = (
    ("#!", SCRIPT),
    ("#cloud-config", CLOUD_CONFIG),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#include", "text/x-include-url"),
    ("## template: jinja", "text/jinja2"),
)
# Parts whose type cloud-init finds by their beginning. It renders a template first.
_GUESSED_TYPES: Final = (SCRIPT, "text/plain")
_HEADERS: Final = ("mime-version:", "content-type:")


class MimePart(Struct, frozen=True, kw_only=True):
    """One part: its type and its text.

    Attributes:
        content: Its bytes, where they may differ from `text`: compressed, or not UTF-8.
    """

    content_type: str
    text: str
    content: bytes = b""


def document(parts: Sequence[MimePart]) -> str:
    """Return the parts as one MIME document, in order, the same for the same parts."""
    lines = {line.rstrip() for part in parts for line in part.text.splitlines()}
    boundary = next(
        name
        for name in ("//" if not n else f"//{n}" for n in itertools.count())
        if not lines & {f"--{name}", f"--{name}--"}
    )
    written = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for part in parts:
        # The line end before a boundary belongs to the boundary: the text is unchanged.
        written += [f"--{boundary}", f"Content-Type: {part.content_type}", *_body(part)]
    return "\n".join((*written, f"--{boundary}--", ""))


def _body(part: MimePart) -> tuple[str, ...]:
    """Return the lines after the content type of a part.

    cloud-init changes characters beyond ASCII unless the part has a transfer encoding; nodeadm
    reads the bytes unchanged.

    Source: cloudinit/user_data.py (convert_string) and Message.get_payload of Python, run with
    cloud-init 22.4.2 (2026-11).
    """
    if part.text.isascii() or part.content_type == NODE_CONFIG:
        return "", part.text
    text = base64.encodebytes(part.content or part.text.encode()).decode("ascii")
    return "Content-Transfer-Encoding: base64", "", text


def parts_of(custom: str, *, node_config: bool) -> tuple[MimePart, ...]:
    """Return the parts of a user's user data: of a MIME document, or a single part.

    Args:
        node_config: Whether nodeadm reads it, too.

    Raises:
        InvalidManifestError: With the part or line that cannot be read.
    """
    if not custom.strip():
        return ()
    if custom.lstrip().lower().startswith(_HEADERS):
        found = _split(custom.lstrip())
    else:
        found = (MimePart(content_type=_kind(custom, node_config=node_config), text=custom),)
    found = tuple(_as_run(part) if part.content_type == SCRIPT else part for part in found)
    for where, part in places(found):
        _CHECKS.get(part.content_type, _anything)(part.text, where)
    return found


def places(parts: Sequence[MimePart]) -> Iterator[tuple[str, MimePart]]:
    """Yield each part with its place, which is empty for the only one."""
    for number, part in enumerate(parts, 1):
        yield f"part {number}" if len(parts) > 1 else "", part


def _as_run(script: MimePart) -> MimePart:
    """Return a script without empty lines before #! and CRLF, which the kernel cannot run.

    cloud-init removes carriage returns only if the first line ends in one.

    Source: https://github.com/canonical/cloud-init/blob/04eacd06/cloudinit/util.py (dos2unix) and
    .../cloudinit/handlers/shell_script.py (2026-11).
    """
    return replace(
        script,
        text=script.text.replace("\r\n", "\n").lstrip("\n"),
        content=script.content.replace(b"\r\n", b"\n").lstrip(b"\n"),
    )


def _marked(text: str, default: str = "") -> str:
    """Return the type of a text by its beginning, as cloud-init does.

    Source: https://github.com/canonical/cloud-init/blob/04eacd06/cloudinit/handlers/__init__.py
    (type_from_starts_with) and .../cloudinit/user_data.py (_process_msg, 2026-11).
    """
    begins = text.lstrip().lower()
    return next((kind for mark, kind in _MARKS if begins.startswith(mark)), default)


def _kind(custom: str, *, node_config: bool) -> str:
    if kind := _marked(custom, NODE_CONFIG if node_config else ""):
        return kind
    remedy = "write a script that begins with #!, #cloud-config, or a MIME multi-part document"
    raise user_data_error("line 1", custom, remedy)


def _parsed(custom: str) -> Message:
    return email.message_from_bytes(custom.encode(), policy=compat32)


def _split(custom: str) -> tuple[MimePart, ...]:
    message = _parsed(custom)
    boundary = message.get_boundary()
    if message.defects and custom.rstrip().endswith(f"\n--{boundary}"):
        # A boundary without a part after it counts as the end; public manifests have such.
        message = _parsed(f"{custom.rstrip()}--\n")
    if not message.is_multipart():
        remedy = "a MIME document needs `Content-Type: multipart/mixed` with its boundary"
        raise user_data_error("line 1", custom, remedy)
    if message.defects:
        raise user_data_error("", custom, _amiss(message.defects[0], boundary))
    found = []
    for number, entry in enumerate(message.get_payload(), 1):
        where = f"part {number}"
        if not isinstance(entry, Message) or entry.is_multipart():
            raise user_data_error(
                where, str(entry), "parts within parts are not read; write them one by one"
            )
        if any(isinstance(bug, MissingHeaderBodySeparatorDefect) for bug in entry.defects):
            raise user_data_error(
                where, str(entry), "leave an empty line between its headers and its text"
            )
        payload = entry.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        text = content.decode("utf-8", "replace")
        kind = entry.get_content_type()
        kind = _marked(text, kind) if kind in _GUESSED_TYPES else kind
        found.append(MimePart(content_type=kind, text=text, content=content))
    return tuple(found)


def _amiss(defect: Exception, boundary: str | None) -> str:
    """Return what to do about the first defect of a MIME document."""
    if isinstance(defect, MissingHeaderBodySeparatorDefect):
        return f"leave an empty line between the headers and the first --{boundary}"
    if isinstance(defect, CloseBoundaryNotFoundDefect):
        return f"end the MIME document with --{boundary}--"
    return f"is no MIME document: {type(defect).__doc__}"


def _script(text: str, where: str) -> None:
    if not text.lstrip("\n").startswith("#!"):
        raise user_data_error(where, text, "begin a script with #!, as #!/bin/bash")


def _cloud_config(text: str, where: str) -> None:
    for entry in _yaml(text, where):
        if entry is not None and not isinstance(entry, Mapping):
            raise user_data_error(where, text, "write cloud-config as named settings")


def _node_config(text: str, where: str) -> None:
    """Check the only YAML document that nodeadm decodes: the first of a part.

    Source: https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/api/bridge/decode.go
    and .../nodeadm/internal/configprovider/mime.go (2026-11).
    """
    first, *more = _yaml(text, where) or [None]
    found = first if isinstance(first, Mapping) else {}
    version = str(found.get("apiVersion"))
    if not version.startswith("node.eks.aws/") or found.get("kind") != "NodeConfig":
        remedy = (
            "write a NodeConfig of node.eks.aws/v1alpha1, a script that begins with #!, or a "
            "MIME multi-part document"
        )
        raise user_data_error(where or "line 1", text, remedy)
    if not isinstance(found.get("spec", {}), Mapping):
        raise user_data_error(where, text, "spec of a NodeConfig must be an object")
    if any(entry is not None for entry in more):
        raise user_data_error(
            where, text, "write each NodeConfig as a part of its own: one is read of each"
        )


def _yaml(text: str, where: str) -> list[Any]:
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError, LookupError) as error:
        mark = getattr(error, "problem_mark", None)
        lines = text.splitlines()
        line = f"line {mark.line + 1}" if mark is not None else ""
        value = lines[mark.line] if mark is not None and mark.line < len(lines) else text
        place = ", ".join(item for item in (where, line) if item)
        problem = "nested too deeply, not text, or not what its tag says"
        problem = str(error) if isinstance(error, ValueError) else problem
        reason = getattr(error, "problem", None) or problem
        raise user_data_error(place, value, f"is no YAML: {reason}") from error


def _anything(_text: str, _where: str) -> None:
    """Accept a part that only cloud-init reads."""


_CHECKS: Final[Mapping[str, Callable[[str, str], None]]] = {
    SCRIPT: _script,
    CLOUD_CONFIG: _cloud_config,
    NODE_CONFIG: _node_config,
}
