import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from shared.model.kubernetes.pods import Pod
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.record import compressed, decision_document
from tests import builders as make
from tests.unit.cli.running import ROOT

PROGRAM = """
import sys
from pathlib import Path
from functions.cli.plan.recorded_decision import load_decision
for path in sorted(Path(sys.argv[1]).iterdir()):
    decision = load_decision(path.read_bytes())
    plan = decision.replay()
    if not decision.is_identical(plan):
        print(path.name)
"""


def decision(seed: int) -> bytes:
    """Return a small decision with spreads, rules between pods, limits and nodes that are there."""
    draw = random.Random(seed)
    pods: list[Pod] = []
    for name in range(draw.randint(1, 5)):
        rules = draw.choice(
            (
                {},
                {"spreads": (make.spread(hard=draw.random() < 0.5),)},
                {"anti_affinity": (make.affinity(),)},
                {"affinity": (make.affinity("topology.kubernetes.io/zone"),)},
            )
        )
        cpu, count = draw.choice((100, 300, 900, 1700, 5000)), draw.randint(1, 12)
        pods += make.pods(
            count, f"w{name}-", cpu=cpu, memory=draw.randint(1, 4000) * 2**20, **rules
        )
    types = [
        make.instance_type(f"m5.{n}large", cpu=2000 * n, memory=8 * n * 2**30, price=96_000 * n)
        for n in (1, 2, 4)
    ]
    snapshot = make.snapshot(
        *pods,
        provisioners=(make.provisioner(), make.provisioner("spare", weight=draw.randint(0, 9))),
        sites=(make.site(), make.site("spare")),
        nodes=tuple(make.node(f"n{n}") for n in range(draw.randint(0, 3))),
        instance_types=tuple(types),
        seed=seed,
    )
    settings = PackingSettings(max_node_vcpus=draw.choice((0, 2, 96)))
    return compressed(decision_document(str(seed), snapshot, decide(snapshot, settings), settings))


def differing(folder: Path, hash_seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def save(folder: Path, count: int) -> None:
    for seed in range(count):
        (folder / f"{seed:04}.json.gz").write_bytes(decision(seed))


def test_decisions_replay_byte_identical_under_other_hash_seeds(tmp_path: Path) -> None:
    save(tmp_path, 25)
    assert [differing(tmp_path, hash_seed) for hash_seed in (1, 2)] == ["", ""]


@pytest.mark.slow
def test_a_thousand_decisions_replay_byte_identical_under_other_hash_seeds(tmp_path: Path) -> None:
    save(tmp_path, 1000)
    assert [differing(tmp_path, hash_seed) for hash_seed in (1, 2)] == ["", ""]
