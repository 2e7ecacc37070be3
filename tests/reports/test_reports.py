"""Reports of users, played on `dovetail plan`."""

import re
from pathlib import Path

import pytest

from shared.instance_types.catalog import embedded_catalog
from tests.reports.judging import answer_to, differences
from tests.reports.reading import Row, read_rows

ROWS = read_rows()
_TYPE = re.compile(r"\b[a-z]+\d[a-z\d-]*\.(?:nano|micro|small|medium|large|metal|\d*xlarge)\b")


def _case(row: Row) -> object:
    """Return a row as a case; one that waits for a change must fail until then."""
    waits = (
        [pytest.mark.xfail(reason=row.waits_for, raises=AssertionError)] if row.waits_for else []
    )
    return pytest.param(row, id=row.name, marks=waits)


@pytest.mark.parametrize("row", [_case(row) for row in ROWS])
def test_the_plan_is_what_the_report_asks_for(row: Row, tmp_path: Path) -> None:
    wrong = list(differences(answer_to(row, tmp_path), row.expect))
    assert not wrong, "\n".join([*wrong, f"right: {row.right}", f"why: {row.why}", row.report])


def test_rows_name_machines_that_the_catalogue_has() -> None:
    """A row about another one shows nothing: `plan` refuses the machine, whatever is asked."""
    known = {instance_type.name for instance_type in embedded_catalog().instance_types}
    unknown = {row.name: set(_TYPE.findall(row.manifests)) - known for row in ROWS}
    assert not {name: found for name, found in unknown.items() if found}
