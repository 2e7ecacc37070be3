"""Decisions as changes of a base: read again they are what was decided, whatever is lost."""

import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from functions.cli.plan.decision_documents import MissingBaseError, base_of, whole_document
from functions.cli.plan.recorded_decision import load_decision
from shared.model.errors import InvalidManifestError, UnavailableError
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.bases import MAX_BASE_AGE, DecisionWriter
from shared.provisioning.decisions.record import decision_document
from tests.builders import CATALOG, NOW, node, pod, pods, snapshot
from tests.fakes.decisions import FakeDecisions

SETTINGS = PackingSettings(improve_iterations=2)
MINUTE = timedelta(minutes=1)


def scene(count: int = 3, **changes: Any) -> ClusterSnapshot:
    """Return a cluster with a pod on each of so many nodes."""
    names = [f"n{number:03}" for number in range(count)]
    given: dict[str, Any] = {
        "bound": tuple(
            pod(f"b-{name}", node_name=name, phase="Running", kept_for=MINUTE * 90.5)
            for name in names
        ),
        "nodes": tuple(node(name, resource_version="7") for name in names),
        **changes,
    }
    return snapshot(pod("waits", cpu=1500), **given)


def write(
    writer: DecisionWriter, decisions: FakeDecisions, plan_id: str, seen: ClusterSnapshot
) -> str:
    return writer.write(decisions, plan_id, seen, decide(seen, SETTINGS), SETTINGS)


def without_versions(seen: ClusterSnapshot) -> ClusterSnapshot:
    return replace(
        seen,
        bound=tuple(replace(entry, resource_version="") for entry in seen.bound),
        nodes=tuple(replace(entry, resource_version="") for entry in seen.nodes),
    )


def bases(decisions: FakeDecisions) -> list[str]:
    return [key for key in decisions.documents if key.startswith("bases/")]


def changed(seen: ClusterSnapshot, number: int) -> ClusterSnapshot:
    """Return the cluster a minute later for each number: a pod bound, one gone, nodes reported."""
    return replace(
        seen,
        taken_at=NOW + number * MINUTE,
        bound=tuple(
            sorted(
                (*seen.bound[1:], pod(f"c-{number}", node_name="n001", phase="Running")),
                key=lambda entry: (entry.key, entry.uid),
            )
        ),
        nodes=tuple(replace(entry, resource_version=str(number)) for entry in seen.nodes),
        seed=number,
    )


def test_each_decision_of_an_hour_is_read_whole_and_replayed_byte_for_byte() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    seen, written = scene(), []
    for number in range(5):
        seen = changed(seen, number)
        written.append((seen, write(writer, decisions, f"plan-{number}", seen)))

    assert bases(decisions) == ["bases/test/2026-01-01/plan-0.json.gz"]
    for number, (was, key) in enumerate(written):
        content = decisions.get(key)
        decision = load_decision(content, decisions.get)
        plan = decide(was, SETTINGS)
        exact = decision_document(f"plan-{number}", without_versions(was), plan, SETTINGS)
        assert decision.is_identical(decision.replay())
        assert decision.snapshot == without_versions(was)
        assert exact == decision_document(
            decision.plan_id, decision.snapshot, decision.plan, decision.settings
        )
        assert load_decision(whole_document(content, decisions.get)) == decision


def test_a_node_that_only_reports_itself_again_is_not_written_again() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    seen = scene()
    write(writer, decisions, "first", seen)
    later = [replace(entry, resource_version="8") for entry in seen.nodes]
    key = write(writer, decisions, "second", replace(seen, nodes=tuple(later)))
    document = json.loads(gzip.decompress(decisions.get(key)))
    assert document["snapshot"]["nodes"] == {"removed": [], "added": []}


@pytest.mark.parametrize(
    "later",
    [
        lambda seen: replace(seen, taken_at=NOW + MAX_BASE_AGE),
        lambda seen: replace(seen, taken_at=NOW - MINUTE),
        lambda seen: replace(seen, bound=()),
        lambda seen: replace(seen, bound=(*seen.bound, *pods(90, "z"))),
    ],
    ids=["an hour later", "the clock went back", "all pods gone", "many pods more"],
)
def test_a_new_base_is_begun(later: Callable[[ClusterSnapshot], ClusterSnapshot]) -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    seen = scene(80)
    write(writer, decisions, "first", seen)
    following = later(seen)
    key = write(writer, decisions, "second", following)
    assert base_of(decisions.get(key)).endswith("/second.json.gz")
    assert load_decision(decisions.get(key), decisions.get).snapshot == without_versions(following)


def test_the_decisions_of_a_day_name_bases_of_that_day() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    evening = NOW.replace(hour=23, minute=59)
    write(writer, decisions, "first", scene(taken_at=evening))
    key = write(writer, decisions, "second", scene(taken_at=evening + MINUTE))
    day = f"{evening + MINUTE:%Y-%m-%d}"
    assert key == f"decisions/test/{day}/second.json.gz"
    assert base_of(decisions.get(key)) == f"bases/test/{day}/second.json.gz"


def test_a_small_cluster_has_decisions_that_hold_all() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=7)
    key = write(writer, decisions, "plan", scene(3))
    assert list(decisions.documents) == [key]
    assert base_of(decisions.get(key)) == ""
    assert whole_document(decisions.get(key), decisions.get) == decisions.get(key)


def test_two_processes_that_write_at_once_have_a_base_each() -> None:
    decisions, first, other = FakeDecisions(), DecisionWriter(small=0), DecisionWriter(small=0)
    seen = scene()
    keys = [
        write(writer, decisions, name, changed(seen, number))
        for number, (writer, name) in enumerate(
            [(first, "a"), (other, "b"), (first, "c"), (other, "d")]
        )
    ]
    assert len(bases(decisions)) == 2
    for number, key in enumerate(keys):
        decision = load_decision(decisions.get(key), decisions.get)
        assert decision.snapshot == without_versions(changed(seen, number))


class _Failing(FakeDecisions):
    """Loses the writes of one prefix."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix

    def put(self, key: str, document: bytes) -> None:
        if self.prefix and key.startswith(self.prefix):
            raise UnavailableError(key)
        super().put(key, document)


@pytest.mark.parametrize("prefix", ["bases/", "decisions/"])
def test_after_a_write_that_failed_no_decision_names_what_is_not_there(prefix: str) -> None:
    decisions, writer = _Failing(prefix), DecisionWriter(small=0)
    with pytest.raises(UnavailableError):
        write(writer, decisions, "first", scene())
    decisions.prefix = ""
    key = write(writer, decisions, "second", scene())
    assert load_decision(decisions.get(key), decisions.get).snapshot == without_versions(scene())


def test_a_base_that_is_missing_is_told_with_where_it_is() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    content = decisions.get(write(writer, decisions, "plan", scene()))
    del decisions.documents[bases(decisions)[0]]
    with pytest.raises(MissingBaseError, match=r"s3://BUCKET/bases/test/2026-01-01/plan\.json\.gz"):
        load_decision(content, decisions.get)
    with pytest.raises(MissingBaseError):
        load_decision(content)


def damaged(document: dict[str, Any], part: str) -> dict[str, Any]:
    if part == "key":
        return {**document, "base": "bases/../catalog/2026-01-01/x.json.gz"}
    if part == "snapshot":
        return {**document, "snapshot": []}
    snapshot = {**document["snapshot"], "bound": {"removed": [99], "added": []}}
    return {**document, "snapshot": snapshot}


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("key", "base: must be the key of a base"),
        ("snapshot", "snapshot: is missing"),
        ("changes", "snapshot.bound.removed: names place 99"),
    ],
)
def test_damaged_changes_name_what_is_wrong(part: str, told: str) -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    document = json.loads(gzip.decompress(decisions.get(write(writer, decisions, "plan", scene()))))
    with pytest.raises(InvalidManifestError) as raised:
        load_decision(json.dumps(damaged(document, part)).encode(), decisions.get)
    assert f"{raised.value.field}: {raised.value.remedy}".startswith(told)


@pytest.mark.parametrize(
    ("base", "told"),
    [
        (b"\x1f\x8b torn", "base: document: must be a decision"),
        (b'{"version":4,"bound":{}}', "base.bound: must be a list"),
        (b'{"version":5}', "base: version: must be 3 or 4"),
    ],
)
def test_a_damaged_base_is_refused(base: bytes, told: str) -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    content = decisions.get(write(writer, decisions, "plan", scene()))
    with pytest.raises(InvalidManifestError) as raised:
        load_decision(content, lambda _: base)
    assert f"{raised.value.field}: {raised.value.remedy}".startswith(told)


def test_what_msgspec_cannot_write_is_written_all_the_same() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    vast = scene(bound=(pod("vast", cpu=2**70, node_name="n000", phase="Running"),))
    decision = load_decision(decisions.get(write(writer, decisions, "p", vast)), decisions.get)
    assert decision.snapshot == without_versions(vast)


def test_the_catalogue_of_a_base_is_the_one_that_was_seen() -> None:
    decisions, writer = FakeDecisions(), DecisionWriter(small=0)
    write(writer, decisions, "first", scene())
    cheaper = tuple(
        replace(
            kind,
            offerings=tuple(replace(offer, price_micros_per_hour=1) for offer in kind.offerings),
        )
        for kind in CATALOG
    )
    key = write(writer, decisions, "second", scene(instance_types=cheaper))
    assert len(bases(decisions)) == 1
    assert load_decision(decisions.get(key), decisions.get).snapshot.instance_types == cheaper
