"""Images and charts as OCI layouts: what is named is there, byte for byte."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.release import image, oci
from tools.release.debian_packages import DebianError

EPOCH = 1_700_000_000


def _files(layout: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(layout)) as archive:
        return {
            member.name: (archive.extractfile(member) or io.BytesIO()).read()
            for member in archive.getmembers()
        }


def _blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    content = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert descriptor["size"] == len(content)
    return content


def test_a_chart_is_found_by_its_version_as_helm_pull_finds_it() -> None:
    about = {"name": "dovetail", "version": "0.1.0", "description": "a chart"}
    files = _files(oci.chart(about, b"packed", EPOCH))

    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (top,) = json.loads(files["index.json"])["manifests"]
    assert top["annotations"] == {"org.opencontainers.image.ref.name": "0.1.0"}
    manifest = json.loads(_blob(files, top))
    assert json.loads(_blob(files, manifest["config"])) == about
    (layer,) = manifest["layers"]
    assert (layer["mediaType"], _blob(files, layer)) == (oci.HELM_LAYER, b"packed")
    assert len(files) == 5


def test_a_layer_is_the_same_whoever_owns_its_files_and_whenever(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "program").write_text("#!")
    (tmp_path / "bin" / "program").chmod(0o755)
    (tmp_path / "link").symlink_to("bin/program")
    blob, whole = oci.layer(tmp_path, EPOCH)
    (tmp_path / "bin" / "program").touch()

    assert oci.layer(tmp_path, EPOCH) == (blob, whole)
    plain = gzip.decompress(blob.content)
    assert whole == f"sha256:{hashlib.sha256(plain).hexdigest()}"
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == ["bin", "bin/program", "link"]
    assert {(member.uid, member.uname, member.mtime) for member in members} == {(0, "", EPOCH)}
    assert members[2].linkname == "bin/program"


def test_the_image_starts_as_the_dockerfile_says() -> None:
    said = image.start(image.DOCKERFILE_TEXT)

    assert said["Entrypoint"] == ["/opt/forwarder/bin/python", "-m", "functions.forwarder"]
    assert (said["User"], said["WorkingDir"]) == ("65532:65532", "/app")
    assert "DOVETAIL_HEALTH_PORT=8080" in said["Env"]
    assert said["ExposedPorts"] == {"8080/tcp": {}}


def test_a_package_that_was_not_locked_is_refused_with_the_remedy(tmp_path: Path) -> None:
    package = tmp_path / "libc6_2.99-1_amd64.deb"
    package.write_bytes(b"another")

    with pytest.raises(DebianError, match=r"libc6_2\.99-1_amd64\.deb is not .* make lock-image"):
        image.check([package])
