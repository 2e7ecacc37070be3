import pytest

from tests.karpenter_cases.checklists import Checklist, checklists, faults


@pytest.mark.parametrize("checklist", checklists(), ids=lambda entry: entry.name)
def test_each_case_has_a_test_of_its_own_or_a_reason_of_its_own(checklist: Checklist) -> None:
    assert faults(checklist) == []
