"""The file of a record: what it refuses, and who may use it at a time."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.cli.input_error import InputError
from functions.cli.shadow.fleet import Fleet, Step
from functions.cli.shadow.record import ShadowRecord
from functions.cli.shadow.step import step
from shared.model.values import replace
from tests.unit.cli.shadow.week import ABOUT, observations, rules

EVERY = timedelta(hours=1)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[ShadowRecord]:
    with ShadowRecord(tmp_path / "a.db", make=True) as made:
        made.begin(ABOUT)
        yield made


def test_only_one_process_records_and_others_may_read_meanwhile(
    record: ShadowRecord, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    with pytest.raises(InputError, match="another dovetail shadow records in it"):
        ShadowRecord(path, make=True)
    with ShadowRecord(path, make=False) as reader:
        with pytest.raises(InputError, match="nothing is recorded in it yet"):
            reader.recorded()
        (observed,) = observations(5, 1, EVERY)
        record.add(Fleet(), step(Fleet(), observed, rules(EVERY)))
        assert reader.recorded().progress.last_at == observed.at


def test_a_step_that_changes_nothing_is_not_recorded(record: ShadowRecord) -> None:
    record.add(Fleet(), Step(fleet=Fleet()))
    assert record.fleet() == Fleet()


def test_a_step_that_cannot_be_written_whole_is_not_recorded(record: ShadowRecord) -> None:
    (observed,) = observations(5, 1, EVERY)
    made = step(Fleet(), observed, rules(EVERY))
    broken: Any = (object(),)
    with pytest.raises(NotImplementedError):
        record.add(Fleet(), replace(made, purchases=broken))
    assert record.fleet() == Fleet()
    record.add(Fleet(), made)
    assert record.fleet() == made.fleet


def test_a_record_of_another_cluster_is_refused(record: ShadowRecord) -> None:
    record.begin(replace(ABOUT, prices="of today"))
    other = replace(ABOUT, cluster="https://other")
    with pytest.raises(InputError, match="is the record of https://test, not of https://other"):
        record.begin(other)


def test_files_that_are_no_record_are_refused(tmp_path: Path) -> None:
    missing, odd = tmp_path / "missing.db", tmp_path / "odd.db"
    with pytest.raises(InputError, match="there is no such file"):
        ShadowRecord(missing, make=False)
    assert not missing.exists()
    odd.write_text("no database, but long enough to be read as one" * 30)
    for make in (True, False):
        with pytest.raises(InputError, match="file is not a database; name a file of dovetail"):
            ShadowRecord(odd, make=make)
    with pytest.raises(InputError, match="name a file in a folder that exists"):
        ShadowRecord(tmp_path / "none" / "a.db", make=True)
