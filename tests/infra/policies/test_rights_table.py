"""docs/security.md lists every right as it is, and the tests it names exist."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.infra.policies.rights_table import MARKS, PAGE, grants, reasons, table
from tests.infra.templates import Template
from tools.made_part import replaced

TESTS = Path(__file__).resolve().parents[2]


def test_the_table_of_rights_is_current(
    control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    page = PAGE.read_text()

    cluster = clusters["prod"]
    rows = table(grants(control_plane, cluster), reasons({"": control_plane, "prod": cluster}))
    current = replaced(page, rows, MARKS) == page
    assert current, "the rights have changed: make rights, and read what it changes"


def test_every_test_the_page_names_exists() -> None:
    written = "".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))

    assert len(named) > 6
    assert [entry for entry in sorted(named) if f"def {entry}(" not in written] == []
