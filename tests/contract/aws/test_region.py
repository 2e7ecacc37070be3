"""Where people's commands look: named by the environment, or by the profile they use."""

from pathlib import Path

import pytest

from shared.model.errors import PermanentError
from shared.runtime.system import region


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of the SDK; nothing else names a Region."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config"
    file.write_text("[default]\nregion = eu-west-1\n[profile far]\nregion = ap-south-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    return file


def test_the_environment_names_the_region_first(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "far")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert region() == "us-west-2"
    monkeypatch.setenv("AWS_REGION", "us-west-1")
    assert region() == "us-west-1"


def test_otherwise_the_profile_in_use_names_it(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert region() == "eu-west-1"
    monkeypatch.setenv("AWS_PROFILE", "far")
    assert region() == "ap-south-1"


def test_without_a_name_it_is_the_oldest(profiles: Path) -> None:
    profiles.write_text("")
    assert region() == "us-east-1"


def test_a_profile_that_is_not_there_is_an_error_of_ours(
    profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(PermanentError, match=r"configuration of the SDK: .*missing"):
        region()
