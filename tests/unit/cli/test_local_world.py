"""Where the local world is not installed, its commands say what they need."""

import pytest

from functions.cli import local_world
from functions.cli.main import main, make_parser


@pytest.mark.parametrize(
    "words",
    [
        "demo",
        "demo --scenario gpu",
        "up --help",
        "break capacity --type m5.large",
        "scenarios",
    ],
)
@pytest.mark.usefixtures("signals_as_they_were")
def test_without_it_each_command_says_what_it_needs_whatever_its_arguments(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_world, "find_spec", lambda _: None)

    assert main(words.split()) == 2
    name = words.split(maxsplit=1)[0]
    assert capsys.readouterr().err == (
        f"dovetail {name}: needs a checkout of Dovetail and the extras infra and local: "
        f"in the checkout, make setup && .venv/bin/dovetail {name}\n"
    )


def test_its_commands_are_listed_with_it_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = make_parser().format_help()
    monkeypatch.setattr(local_world, "find_spec", lambda _: None)

    assert make_parser().format_help() == listed
    assert all(told.split()[0] in listed for told in local_world.HELP.values())
