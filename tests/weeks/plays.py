"""Plays a trace with one autoscaler, in a process of its own."""

import hashlib
import logging
import time
from pathlib import Path

import msgspec

from tests.weeks.karpenter import KarpenterWorld, play
from tests.weeks.meter import Played, measured
from tests.weeks.traces import Trace
from tests.weeks.world import WeeksWorld, node_pool


class Kept(msgspec.Struct, frozen=True):
    """A result of Karpenter's.

    Attributes:
        of: Digest of trace, NodePool and program.
    """

    of: str
    played: Played


class Asked(msgspec.Struct, frozen=True):
    """A trace to play.

    Attributes:
        seed: Of what the world adds to it: boots and waits.
        after: consolidateAfter of the NodePool.
        folder: Where Karpenter's result is kept.
    """

    trace: Trace
    seed: int
    after: str
    folder: Path


def dovetail(asked: Asked) -> Played:
    """Play a trace with Dovetail."""
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    world = WeeksWorld(asked.trace, asked.seed, asked.after)
    world.play()
    return measured(world, time.process_time() - began)


def karpenter(asked: Asked, program: Path) -> Played:
    """Return what Karpenter makes of a trace: as it was kept, or played now and kept."""
    logging.disable(logging.CRITICAL)
    trace, stamp = asked.trace, program.with_suffix(".stamp").read_text("ascii")
    words = f"{trace}{asked.seed}{node_pool(trace.families, asked.after)}{stamp}"
    digest = hashlib.sha256(words.encode()).hexdigest()[:20]
    path = asked.folder / f"{trace.name}-{asked.seed}-{asked.after}.json"
    if path.exists():
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
        if kept.of == digest:
            return kept.played
    world = KarpenterWorld(trace, asked.seed, asked.after)
    said = play(world, program)
    played = measured(world, float(said["cpuSeconds"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(Kept(digest, played)))
    path.write_bytes(text + b"\n")
    return played
