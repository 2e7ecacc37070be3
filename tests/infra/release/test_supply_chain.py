"""What is shipped is named, hashed and licensed; the bundle is weighed and made twice."""

import base64
import copy
import hashlib
import json
from importlib import metadata
from pathlib import Path

import pytest

from tools import check_installed, make_bundle, make_sbom

pytestmark = pytest.mark.landing


def test_every_locked_package_is_in_the_bill_with_its_hashes() -> None:
    bill = make_sbom.document()
    listed = {
        (component["name"], component["version"]): component for component in bill["components"]
    }

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    for lock in (*make_sbom.RUNTIME, make_sbom.DEVELOPMENT):
        for name, version, hashes in make_sbom.pins(lock):
            (reference,) = listed[name, version]["externalReferences"]
            assert hashes
            assert {row["content"] for row in reference["hashes"]} >= set(hashes)
    assert listed["aws-cdk", _node_version("aws-cdk")]["hashes"][0]["alg"] == "SHA-512"
    assert len({component["bom-ref"] for component in bill["components"]}) == len(
        bill["components"]
    )


def test_what_the_page_is_made_of_is_shipped_and_what_builds_it_is_not() -> None:
    scopes = {
        component["name"]: component["scope"]
        for component in make_sbom.document()["components"]
        if component["purl"].startswith("pkg:npm/")
    }
    assert scopes["preact"] == scopes["uplot"] == "required"
    assert scopes["vite"] == scopes["aws-cdk"] == "excluded"


def _node_version(name: str) -> str:
    packages = json.loads(make_sbom.NODE[0].read_text())["packages"]
    return str(packages[f"node_modules/{name}"]["version"])


def test_shipped_packages_are_distinguished_from_development_packages() -> None:
    scopes = {
        component["name"]: component["scope"] for component in make_sbom.document()["components"]
    }

    assert {scopes[value] for value in ("boto3", "kubernetes", "pyyaml", "rich", "pygments")} == {
        "required"
    }
    assert {scopes[value] for value in ("moto", "pytest", "aws-cdk-lib", "aws-cdk")} == {"excluded"}


def test_every_shipped_package_is_under_a_reviewed_licence() -> None:
    bill = make_sbom.document()
    assert make_sbom.unexplained(bill) == ()

    spoilt = copy.deepcopy(bill)
    shipped = [component for component in spoilt["components"] if component["scope"] == "required"]
    shipped[0]["licenses"] = [{"license": {"name": "AGPL-3.0"}}]
    del shipped[1]["licenses"]
    found = make_sbom.unexplained(spoilt)
    assert [value.rsplit(": ", 1)[1] for value in found] == ["AGPL-3.0", "no licence stated"]


def test_the_same_locks_give_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = [tmp_path / name for name in ("one.json", "two.json")]
    for path in written:
        assert make_sbom.main(["--output", str(path)]) == 0

    assert written[0].read_bytes() == written[1].read_bytes()
    assert " shipped\n" in capsys.readouterr().out


ONE_AUTHORITY = b"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"


class Installed(metadata.Distribution):
    """A package of one file that is installed in a folder."""

    def __init__(self, folder: Path, recorded: bytes, module: str = "some/module.py") -> None:
        self._folder = folder
        digest = base64.urlsafe_b64encode(hashlib.sha256(recorded).digest()).rstrip(b"=").decode()
        self._texts = {
            "METADATA": "Metadata-Version: 2.1\nName: Some.Package\nVersion: 1.2\n",
            "RECORD": f"{module},sha256={digest},{len(recorded)}\n"
            "../../bin/some,sha256=x,1\nsome/RECORD,,\n",
        }

    def read_text(self, filename: str) -> str | None:
        return self._texts.get(filename)

    def locate_file(self, path: object) -> Path:
        return self._folder / str(path)


@pytest.mark.parametrize(
    ("content", "locked", "said"),
    [
        (b"VALUE = 1", "1.2", []),
        (b"VALUE = 2", "1.2", ["some-package: some/module.py was changed"]),
        (None, "1.2", ["some-package: some/module.py was changed"]),
        (b"VALUE = 1", "1.3", ["some-package 1.2 is installed, the lock has 1.3"]),
        (b"VALUE = 1", None, ["some-package 1.2 is installed, the lock has nothing"]),
    ],
)
def test_what_is_installed_must_be_what_is_locked(
    tmp_path: Path, content: bytes | None, locked: str | None, said: list[str]
) -> None:
    if content is not None:
        (tmp_path / "some").mkdir()
        (tmp_path / "some" / "module.py").write_bytes(content)
    pinned = [] if locked is None else [("some_package", locked)]

    assert list(check_installed.faults([Installed(tmp_path, b"VALUE = 1")], pinned)) == said


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (ONE_AUTHORITY + b"\n# A proxy\n" + ONE_AUTHORITY * 2, 0),
        (ONE_AUTHORITY + b"\nverify = none\n" + ONE_AUTHORITY, 1),
        (ONE_AUTHORITY.replace(b"QQ", b"QR") + ONE_AUTHORITY, 1),
        (ONE_AUTHORITY[:-3], 1),
    ],
)
def test_certificate_authorities_may_be_appended_and_none_changed(
    tmp_path: Path, content: bytes, faults: int
) -> None:
    (tmp_path / "certifi").mkdir()
    (tmp_path / check_installed.AUTHORITIES).write_bytes(content)
    installed = Installed(tmp_path, ONE_AUTHORITY, check_installed.AUTHORITIES)

    found = list(check_installed.faults([installed], [("some_package", "1.2")]))

    assert found == ["some-package: certifi/cacert.pem was changed"] * faults


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the next bundles consist of, instead of an installation."""
    contents: list[bytes] = []

    def make(source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        (target / "module.py").write_bytes(contents.pop(0))

    monkeypatch.setattr(make_bundle, "make", make)
    monkeypatch.setattr(make_bundle, "stage", lambda: tmp_path)
    monkeypatch.setattr(make_bundle, "BUNDLE", tmp_path / "bundle")
    return contents


def test_a_bundle_that_is_the_same_twice_passes(
    bundle: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    bundle += [b"x" * 1_500_000] * 2

    assert make_bundle.main([]) == 0
    said = capsys.readouterr().out
    assert "1.5 MB unzipped" in said
    assert "made again: the same" in said


def test_a_bundle_that_differs_or_is_too_large_fails(
    bundle: list[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle += [b"x", b"y"]
    assert make_bundle.main([]) == 1
    assert "not reproducible" in capsys.readouterr().err
    (tmp_path / "bundle" / "module.py").unlink()
    (tmp_path / "bundle").rmdir()
    bundle.append(b"x" * (make_bundle.LIMIT_BYTES + 1))
    assert make_bundle.main(["--once"]) == 1
    assert "more than 60 MB" in capsys.readouterr().err


def test_names_and_contents_decide_the_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    one = make_bundle.digest(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")

    assert make_bundle.digest(tmp_path) != one
    assert make_bundle.size(tmp_path) == 1
