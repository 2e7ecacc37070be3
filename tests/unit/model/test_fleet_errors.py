"""What the error codes of CreateFleet mean."""

from shared.model.fleet_errors import refused_offerings
from shared.model.launch import FleetAnswer, FleetError, FleetInstance
from tests.builders import offering

HERE, THERE, ELSEWHERE = (offering(zone=f"us-east-1{letter}") for letter in "abc")


def answer(*errors: FleetError) -> FleetAnswer:
    launched = FleetInstance(instance_id="i-1", offering=ELSEWHERE)
    return FleetAnswer(fleet_id="fleet-1", instances=(launched,), errors=errors)


def test_an_error_that_names_an_offering_refuses_that_one() -> None:
    error = FleetError(code="InsufficientInstanceCapacity", message="", offering=HERE)
    assert refused_offerings(answer(error), [HERE, THERE, ELSEWHERE]) == {HERE}


def test_an_error_that_names_none_refuses_all_that_was_not_launched() -> None:
    error = FleetError(code="UnfulfillableCapacity", message="")
    assert refused_offerings(answer(error), [HERE, THERE, ELSEWHERE]) == {HERE, THERE}


def test_an_error_that_is_no_lack_of_capacity_refuses_nothing() -> None:
    error = FleetError(code="InvalidParameterValue", message="", offering=HERE)
    assert refused_offerings(answer(error), [HERE]) == frozenset()
