"""What commands share: the cluster that is meant, and one line for what cannot be done."""

import argparse
from collections.abc import Callable

import pytest

from functions.cli.parser import number_up_to
from functions.cli.run_command import one_cluster, run_command
from shared.model.errors import NotAttachedError, UnavailableError
from shared.settings import SettingsError


@pytest.mark.parametrize("error", [UnavailableError, SettingsError])
def test_an_error_is_one_line_that_is_no_command_of_the_terminal(
    error: Callable[[str], Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> int:
        raise error("no answer\nfrom \x1b[2J")

    assert run_command("why", broken, lambda _: 0) == 2
    assert capsys.readouterr() == ("", "dovetail why: no answer from ?[2J\n")


def test_the_only_cluster_needs_no_name_and_several_do() -> None:
    assert one_cluster("prod", tuple) == "prod"
    assert one_cluster(None, lambda: ("prod",)) == "prod"
    for attached, listed in (((), "none"), (("one", "two"), "one, two")):
        with pytest.raises(NotAttachedError, match=f"^attached clusters: {listed}; name one with"):
            one_cluster("", lambda attached=attached: attached)  # type: ignore[misc]


@pytest.mark.parametrize("text", ["0", "-1", "abc", "nan", "inf", "1001"])
def test_a_number_out_of_bounds_is_refused(text: str) -> None:
    read = number_up_to(1000)
    assert read("2.5") == 2.5
    with pytest.raises(argparse.ArgumentTypeError, match=f"{text}: give a number above 0, at most"):
        read(text)
