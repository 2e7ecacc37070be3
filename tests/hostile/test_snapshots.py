"""Snapshots: an archived decision that was changed is replayed, or refused in one line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.decisions.record import decision_document
from tests import builders as make
from tests.fakes.decisions import FakeDecisions
from tests.hostile.corpus import batches, mutated, try_batch
from tests.hostile.refusals import one_line
from tests.unit.cli.running import run


def archived() -> dict[str, Any]:
    snapshot = make.snapshot(
        make.pod("a"),
        make.pod("b", spreads=(make.spread(),)),
        provisioners=(make.provisioner(),),
        nodes=(make.node(),),
        sites=(make.site("default"),),
        instance_types=make.CATALOG[:2],
    )
    settings = PackingSettings(improve_iterations=2)
    text = decision_document("plan-1", snapshot, decide(snapshot, settings), settings)
    document: dict[str, Any] = json.loads(text)
    return document


def recorded() -> dict[str, dict[str, Any]]:
    """Return a base and a decision that is a change of it, by their keys."""
    decisions, settings = FakeDecisions(), PackingSettings(improve_iterations=2)
    writer = DecisionWriter(small=0)
    before = make.snapshot(
        make.pod("a"),
        bound=(make.pod("c", node_name="n1"), make.pod("d", node_name="n1")),
        nodes=(make.node(),),
        instance_types=make.CATALOG[:2],
    )
    now = replace(before, bound=(make.pod("b", node_name="n1"), before.bound[1]))
    first = writer.write(decisions, "plan-1", before, decide(before, settings), settings)
    writer.write(decisions, "plan-2", now, decide(now, settings), settings)
    return {
        key: json.loads(gzip.decompress(content))
        for key, content in decisions.documents.items()
        if key != first
    }


@batches
def test_a_changed_decision_is_replayed_or_refused_in_one_line(
    batch: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "decision.json"

    def check(document: dict[str, Any]) -> None:
        file.write_text(json.dumps(document))
        code = run("replay", str(file))
        out, err = capsys.readouterr()
        if code == 2:
            one_line("replay", file, err)
            assert out == ""
        else:
            assert code in (0, 1)
            assert err == ""

    whole = archived()
    try_batch(batch, st.one_of(st.just(whole), mutated((whole,))), check)


@batches
@pytest.mark.parametrize("damaged", ["decision", "base"])
def test_a_changed_base_or_change_of_it_is_replayed_or_refused_in_one_line(
    damaged: str, batch: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = recorded()
    files = {key: tmp_path / key for key in kept}
    for key, file in files.items():
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(kept[key]))
    base, decision = sorted(kept)

    def check(document: dict[str, Any]) -> None:
        files[base if damaged == "base" else decision].write_text(json.dumps(document))
        code = run("replay", str(files[decision]))
        out, err = capsys.readouterr()
        if code == 2:
            one_line("replay", files[decision], err)
            assert out == ""
        else:
            assert code in (0, 1)
            assert err == ""

    whole = kept[base if damaged == "base" else decision]
    try_batch(batch, st.one_of(st.just(whole), mutated((whole,))), check)
