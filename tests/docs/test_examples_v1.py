"""An example of v1alpha5 whose folder `v1` has NodePools: they buy what its Provisioners buy."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest

from functions.cli.plan.reading.documents import Document, read_documents
from functions.cli.plan.reading.snapshot import read_snapshot
from shared.instance_types.catalog import Catalog, embedded_catalog
from shared.model.dialect import V1ALPHA5
from shared.planning.decide import decide
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"
V1ALPHA5_KINDS = (V1ALPHA5.owner_kind, V1ALPHA5.template_kind)
# Scenarios scale these up.
FROM_NONE = 7


@functools.cache
def catalog() -> Catalog:
    return embedded_catalog()


def documents(folder: Path) -> list[Document]:
    return [
        document
        for path in sorted(folder.glob("*.yaml"))
        for document in read_documents(str(path), path.read_bytes())
    ]


def scaled_up(document: Document) -> Document:
    spec = document.raw.get("spec") or {}
    if spec.get("replicas") != 0:
        return document
    raw = {**document.raw, "spec": {**spec, "replicas": FROM_NONE}}
    return Document(where=document.where, raw=raw)


def bought(read: list[Document]) -> tuple[Any, ...]:
    plan = decide(read_snapshot(read, catalog()).snapshot)
    nodes = sorted(
        (node.provisioner, [ref.name for ref in node.pods], [o.offering for o in node.options])
        for node in plan.nodes
    )
    return nodes, plan.placements, sorted(left.pod.name for left in plan.unschedulable)


def examples_with_v1() -> list[Path]:
    return sorted(path.parent for path in EXAMPLES.glob("*/v1"))


@pytest.mark.parametrize("folder", examples_with_v1(), ids=lambda path: path.name)
def test_node_pools_of_an_example_buy_what_its_provisioners_buy(folder: Path) -> None:
    own, today = map(list, (documents(folder), documents(folder / "v1")))
    others = [scaled_up(entry) for entry in own if entry.kind not in V1ALPHA5_KINDS]
    replaced = [entry for entry in own if entry.kind in V1ALPHA5_KINDS]
    with_provisioners = bought([*replaced, *others])
    assert with_provisioners[0]
    assert bought([*today, *others]) == with_provisioners
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^    kubectl apply -f examples/{folder.name}/v1$", page, re.MULTILINE)
