from typing import Final

import pytest

from tests.karpenter_cases.checklists import FOLDER, Checklist, Mark, checklists, faults, read

V1: Final = FOLDER / "v1"


@pytest.mark.parametrize("checklist", checklists(), ids=lambda entry: entry.name)
def test_each_case_has_a_test_of_its_own_or_a_reason_of_its_own(checklist: Checklist) -> None:
    assert faults(checklist) == []


def test_most_cases_of_todays_manifests_pass_and_few_differ() -> None:
    cases = read(V1)
    assert len(cases.cases) == 362
    assert len(cases.marked(Mark.PASSES)) >= 295
    assert cases.marked(Mark.NOT_YET) == ()
    assert len(cases.marked(Mark.DIFFERS)) <= 35
    only = {case.group for case in cases.marked(Mark.NOT_OFFERED)}
    assert only <= {
        "Repair (5)",
        "Overlays (12)",
        "Fixed pools (7)",
        "Reserved capacity (9)",
    }
