"""Files given to the command line: read, or refused in one line, in bounded memory."""

import json
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import strategies as st

from tests.hostile.corpus import batches, mutated, texts, try_batch
from tests.hostile.objects import DOCUMENTS
from tests.hostile.refusals import one_line
from tests.unit.cli.running import PROVISIONER, deployment, node, pod, run
from tests.unit.cli.test_hostile_files import CASES

# Of all inputs of a batch together, above what the first ones take.
_MOST_GROWTH_KIB: Final = 300 * 1024
_ROW: Final = {
    "name": "m5.large",
    "arch": "amd64",
    "vcpus": 2,
    "memory_mib": 8192,
    "max_pods": 29,
    "gpus": [],
    "labels": {"karpenter.k8s.aws/instance-family": "m5"},
    "overhead": {"cpu": "100m", "memory": "596Mi"},
    "offerings": [{"zone": "z", "capacity_type": "on-demand", "price_micros_per_hour": 7}],
}
_CATALOGUE: Final = {
    "version": 1,
    "region": "x-1",
    "source": "a test",
    "date": "2026-01-01",
    "types": [_ROW],
}
_VERSIONS: Final = {"StorageClass": "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1"}
_KINDS: Final = (
    *("Pod", "PersistentVolumeClaim", "PersistentVolume", "Namespace", "StorageClass", "CSINode"),
)
MANIFESTS: Final[Sequence[Mapping[str, Any]]] = (
    PROVISIONER,
    deployment(replicas=2),
    node(),
    pod(),
    *(
        {**found, "apiVersion": _VERSIONS.get(kind, "v1"), "kind": kind}
        for kind in _KINDS
        for found in DOCUMENTS[kind]
    ),
    *DOCUMENTS["Provisioner"],
    {
        **DOCUMENTS["AWSNodeTemplate"][0],
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
    },
)


def _yaml(documents: list[dict[str, Any]]) -> bytes:
    # YAML has no lone surrogates; JSON below has them.
    return yaml.safe_dump_all([PROVISIONER, *documents]).encode("utf-8", "replace")


def _json(documents: list[dict[str, Any]]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}).encode()


@st.composite
def torn(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Draw a content with some bytes put in at one place, or its end missing."""
    content = draw(whole)
    at = draw(st.integers(0, len(content)))
    put_in = draw(st.one_of(texts.map(lambda value: value.encode("utf-8", "replace")), st.binary()))
    return content[:at] + put_in + (content[at:] if draw(st.booleans()) else b"")


documents = st.lists(mutated(MANIFESTS), min_size=1, max_size=2)
wholes = st.one_of(documents.map(_yaml), documents.map(_json))
contents = st.one_of(
    wholes,
    wholes,
    wholes,
    torn(wholes),
    st.sampled_from([content for content, _ in CASES.values()]),
)


@batches
def test_a_file_is_planned_for_or_refused_in_one_line(
    batch: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.yaml"
    catalog = tmp_path / "catalogue.json"
    catalog.write_text(json.dumps(_CATALOGUE))
    before = 0

    def check(content: bytes) -> None:
        nonlocal before
        file.write_bytes(content)
        code = run("plan", "-f", str(file), "--catalog", str(catalog))
        out, err = capsys.readouterr()
        if code == 2:
            one_line("plan", file, err)
            assert out == ""
        else:
            assert code in (0, 3)
            assert all(line.isprintable() for line in (*out.splitlines(), *err.splitlines()))
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    try_batch(batch, contents, check)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MOST_GROWTH_KIB
