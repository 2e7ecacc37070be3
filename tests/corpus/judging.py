"""What Dovetail says of files of NodePools, EC2NodeClasses, Provisioners and AWSNodeTemplates.

Each document is judged alone, as an API server gets them: an EC2NodeClass that another file has is
taken to be right.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from functions.cli.plan.reading.documents import Document, read_documents
from functions.cli.plan.reading.provisioners import as_current
from shared.instance_types.ami_families import refuse_wrong_user_data
from shared.manifests.custom_resources.node_classes import read_node_class
from shared.manifests.custom_resources.node_pools import decode_node_pool
from shared.manifests.custom_resources.node_templates import by_name, read_node_template
from shared.manifests.custom_resources.pool_lifetimes import is_foreign, named_class
from shared.manifests.custom_resources.provisioners import decode_provisioner
from shared.manifests.problems import FieldProblem, InvalidProvisionerError
from shared.manifests.raw_json import mapping, text
from shared.model.dialect import V1, V1ALPHA5

OTHER_CLASSES: Final = {
    "apiVersion": V1.template_version,
    "kind": V1.template_kind,
    "spec": {
        "role": "nodes",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"discovery": "x"}}],
        "securityGroupSelectorTerms": [{"tags": {"discovery": "x"}}],
    },
}
_OTHER_TEMPLATES: Final = {
    "apiVersion": V1ALPHA5.template_version,
    "kind": V1ALPHA5.template_kind,
    "spec": {
        "subnetSelector": {"discovery": "x"},
        "securityGroupSelector": {"discovery": "x"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is said of a file.

    Attributes:
        documents: How many of its documents Dovetail reads; those of other providers are left out.
        refusals: What is wrong, in order of the documents.
        notes: What is read and not acted on, or read otherwise.
    """

    documents: int
    refusals: tuple[FieldProblem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """All that is said, one line each."""
        return "\n".join((*map(str, self.refusals), *self.notes))


def judge(name: str, content: bytes) -> Answer:
    """Return what Dovetail says of the documents of a file.

    Raises:
        InvalidDocumentError: If it cannot be read at all.
    """
    return judge_documents(read_documents(name, content))


def judge_documents(documents: Iterable[Document]) -> Answer:
    """Return what Dovetail says of some documents."""
    notes: list[str] = []
    problems: list[FieldProblem] = []
    current = [as_current(document, notes) for document in documents]
    classes = by_name(entry.raw for entry in current if entry.kind == V1.template_kind)
    read = 0
    for document in current:
        found = _judged(document, classes, problems)
        if found is not None:
            read += 1
            notes += found
    return Answer(documents=read, refusals=tuple(problems), notes=tuple(notes))


def _judged(
    document: Document, classes: Mapping[str, Any], problems: list[FieldProblem]
) -> list[str] | None:
    """Return the notes on a document, None for one that Dovetail does not read."""
    raw = document.raw
    if document.kind == V1.template_kind:
        return [*read_node_class(raw, problems, refuse_wrong_user_data).warnings]
    if document.kind == V1ALPHA5.template_kind:
        read_node_template(raw, problems, refuse_wrong_user_data)
        return []
    try:
        if document.kind == V1.owner_kind and not is_foreign(raw):
            known = {named_class(raw): OTHER_CLASSES, **_right(classes)}
            return [*decode_node_pool(raw, known).warnings]
        if document.kind == V1ALPHA5.owner_kind:
            templates = {_named_template(raw): _OTHER_TEMPLATES}
            return [*decode_provisioner(raw, templates, check=refuse_wrong_user_data).warnings]
    except InvalidProvisionerError as error:
        problems += error.problems
        return []
    return None


def _named_template(provisioner: Mapping[str, Any]) -> str:
    return text(mapping(mapping(provisioner.get("spec")).get("providerRef")).get("name"))


def _right(classes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the EC2NodeClasses that can be used: what is wrong in others is told once."""
    found = {}
    for name, raw in classes.items():
        problems: list[FieldProblem] = []
        read_node_class(raw, problems)
        if not problems:
            found[name] = raw
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an index says should be said of a file.

    Attributes:
        refused: Whether some document is refused; None where either may be.
        noted: Whether a note will do instead.
        words: Names of fields and values, of which one at least must be in what is said.
    """

    refused: bool | None
    noted: bool = False
    words: tuple[str, ...] = ()


_NOTE: Final = re.compile(r"\(or accept with a note[^)]*\)")
# Names of fields: words with a capital letter inside, or with dots; and some single words.
_WORD: Final = re.compile(
    r"[A-Za-z]+(?:\.[A-Za-z]+)+|[a-z]+[A-Z]\w*|role|replicas|windows|requirements"
)


def expected(cell: str) -> Expected:
    """Return what a cell of an index asks for.

    `accept`; `refuse: …` with what is wrong; either of these with `(or accept with a note …)`; or
    `refuse or accept per document`.

    Raises:
        ValueError: If it says neither.
    """
    said = cell.strip()
    words = tuple(dict.fromkeys(_WORD.findall(_NOTE.sub("", said))))
    if said.startswith("refuse or accept"):
        return Expected(refused=None)
    if said.startswith("accept"):
        return Expected(refused=False)
    if said.startswith("refuse"):
        return Expected(refused=True, noted=bool(_NOTE.search(said)), words=words)
    raise ValueError(f"{said!r}: an expectation begins with accept or refuse")


def differences(wanted: Expected, answer: Answer) -> Iterator[str]:
    """Yield how an answer differs from what was expected."""
    for problem in answer.refusals:
        if not problem.field or not problem.remedy:
            yield f"a refusal without field or remedy: {problem}"
    if wanted.refused is False and answer.refusals:
        yield f"is refused: {answer.refusals[0]}"
    if not wanted.refused:
        return
    if not answer.refusals and not (wanted.noted and answer.notes):
        yield "is accepted"
    elif wanted.words and not any(word in answer.said for word in wanted.words):
        yield f"says none of {', '.join(wanted.words)}: {answer.said}"
