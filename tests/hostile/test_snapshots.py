"""Snapshots: an archived decision that was changed is replayed, or refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shared.decisions.record import decision_document
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests import builders as make
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
