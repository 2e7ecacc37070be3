"""Writes the local API server's table of protobuf messages from the Go modules of Kubernetes.

    go mod download -json k8s.io/api@v0.35.4 k8s.io/apimachinery@v0.35.4  # prints each "Dir"
    python -m tools.make_message_table API_DIR APIMACHINERY_DIR \
        > infra/local/kube/schemas/message_table.txt

Numbers and types are those of `generated.proto`; which fields JSON leaves out when they are zero,
and which it writes into the object around them, is in the tags of `types.go`.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import Final

from infra.local.kube.kinds import built_in, type_name

_SCALARS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), "i"),
    "string": "s",
    "bool": "b",
    "bytes": "y",
    "double": "d",
}
_SPECIAL: Final = {
    "resource.Quantity": "q",
    "intstr.IntOrString": "x",
    "meta.Time": "t",
    "meta.MicroTime": "u",
    "meta.FieldsV1": "j",
    "runtime.RawExtension": "j",
}
_EXTRA: Final = (
    *("autoscaling.v1.Scale", "policy.Eviction", "core.Binding", "meta.DeleteOptions"),
    *("authorization.SelfSubjectAccessReview", "authorization.SelfSubjectRulesReview"),
    *("authentication.SelfSubjectReview", "authentication.TokenRequest"),
)
_MESSAGE: Final = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(
    r"^  (optional|repeated|map<string, ([^>]+)>) ?(\S+)?\s(\w+) = (\d+);", re.MULTILINE
)
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAG: Final = re.compile(
    r'^\t(?:\w+\s+)?(\S+)\s+`.*json:"([^"]*)".*protobuf:"\w+,(\d+),', re.MULTILINE
)

Tags = dict[tuple[str, int], tuple[str, str]]
"""(Go type, JSON tag) of a field, by the name of the message and the field's number."""


def _short(package: str, name: str) -> str:
    parts = package.strip(".").split(".")
    version = re.fullmatch(r"v\d+", parts[-1])
    return type_name(parts[-2], parts[-1], name) if version else f"{parts[-1]}.{name}"


def _type(text: str, package: str) -> str:
    if text in _SCALARS:
        return _SCALARS[text]
    owner, _, name = text.rpartition(".")
    short = _short(owner or package, name)
    return _SPECIAL.get(short, short)


def _tags(folder: Path, package: str) -> Tags:
    found: Tags = {}
    for file in folder.glob("*.go"):
        for name, body in _STRUCT.findall(file.read_text(encoding="utf-8")):
            for kind, tag, number in _TAG.findall(body):
                found[_short(package, name), int(number)] = (kind, tag)
    return found


def _pair(field: tuple[str, ...], package: str, owner: str, tags: Tags) -> str:
    label, of_map, kind, name, number = field
    go_type, tag = tags.get((owner, int(number)), ("", ""))
    json_name, *options = tag.split(",")
    if of_map:
        code = "{}" + _type(of_map, package)
    elif label == "repeated":
        code = "[]" + _type(kind, package)
    else:
        code = _type(kind, package)
        if "inline" in options:
            code = f"^{code}"
        elif code in _SCALARS.values() and (go_type.startswith("*") or "omitempty" not in options):
            code += "!"
    return f"{number}={json_name or name}:{code}"


def _messages(roots: list[Path]) -> dict[str, list[str]]:
    found = {}
    for root in roots:
        files = [*sorted(root.rglob("v1/generated.proto")), *root.glob("autoscaling/v2/*.proto")]
        for file in files:
            text = file.read_text(encoding="utf-8")
            package = re.findall(r"^package (.+);", text, re.MULTILINE)[0]
            tags = _tags(file.parent, package)
            for name, body in _MESSAGE.findall(text):
                owner = _short(package, name)
                found[owner] = [
                    _pair(field, package, owner, tags) for field in _FIELD.findall(body)
                ]
    return found


def main(folders: list[str]) -> None:
    """Print the table for the modules in these folders."""
    messages = _messages([Path(folder) for folder in folders])
    wanted = [r.type_name for r in built_in()]
    wanted = [name for name in (*wanted, *_EXTRA) if name in messages]
    lines: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        if name in lines:
            continue
        text = f"{name}: {' '.join(messages[name])}"
        lines[name] = "\n".join(
            textwrap.wrap(
                text, 99, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False
            )
        )
        wanted += [kind for kind in re.findall(r"[a-z]+(?:\.v\d)?\.\w+", text) if kind in messages]
    print("\n".join(lines[name] for name in sorted(lines)))


if __name__ == "__main__":
    main(sys.argv[1:])
