"""What installs the packages: told of indexes as pip is, from a lock that begins with itself."""

import pytest

from tools import set_up

PIP = """\
:env:.find-links='/wheels'
global.cert='/etc/ca.pem'
global.index-url='https://mirror.example/simple'
install.extra-index-url='https://a.example https://b.example'
"""


def test_the_indexes_of_pip_hold_for_uv() -> None:
    assert set_up.uv_environment(PIP, {"HOME": "/root"}) == {
        "UV_FIND_LINKS": "/wheels",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://a.example https://b.example",
        "HOME": "/root",
    }


def test_uv_keeps_what_it_is_told_itself() -> None:
    told = {"UV_DEFAULT_INDEX": "https://own.example/simple"}
    assert set_up.uv_environment("global.index-url='https://mirror.example'", told) == told


@pytest.mark.parametrize("name", ["build", "local"])
def test_a_smaller_set_has_the_versions_of_the_largest(name: str) -> None:
    smaller = set_up.locked(set_up.ROOT / f"requirements/{name}.txt")
    largest = set_up.locked(set_up.ROOT / "requirements/dev.txt")
    assert smaller
    assert smaller.items() <= largest.items()
