"""An image or a chart as an OCI image layout, in one tar file; no daemon and no registry is asked.

`skopeo copy oci-archive:FILE docker://…` and `oras cp --from-oci-layout FILE:TAG …` send it to a
registry.

Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md, manifest.md,
image-index.md and config.md (2026-12).
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
# Source: https://helm.sh/docs/topics/registries/#helm-chart-manifest (2026-12).
HELM_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
HELM_LAYER: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes with their media type, named by their hash."""

    media_type: str
    content: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """`sha256:` and the hash."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    @property
    def descriptor(self) -> dict[str, Any]:
        """How manifests name it."""
        made: dict[str, Any] = {
            "mediaType": self.media_type,
            "digest": self.digest,
            "size": len(self.content),
        }
        if self.annotations:
            made["annotations"] = dict(self.annotations)
        if self.platform:
            made["platform"] = dict(self.platform)
        return made


def moment(epoch: int) -> str:
    """Return seconds since 1970 as RFC 3339 writes them."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def document(media_type: str, value: Mapping[str, Any], **more: Mapping[str, str]) -> Blob:
    """Return a JSON document as a blob."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return Blob(media_type=media_type, content=text.encode(), **more)


def manifest(
    config: Blob, layers: Sequence[Blob], annotations: Mapping[str, str], **more: Mapping[str, str]
) -> Blob:
    """Return the manifest of a configuration and its layers."""
    return document(
        MANIFEST,
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor,
            "layers": [layer.descriptor for layer in layers],
            "annotations": dict(annotations),
        },
        **more,
    )


def index(manifests: Sequence[Blob], annotations: Mapping[str, str]) -> Blob:
    """Return the index of an image for several platforms."""
    return document(
        INDEX,
        {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [entry.descriptor for entry in manifests],
            "annotations": dict(annotations),
        },
    )


def layer(folder: Path, epoch: int) -> tuple[Blob, str]:
    """Return a folder as a layer, and the hash of the layer before it was compressed.

    All belongs to root; times are the same.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            entry = archive.gettarinfo(path, path.relative_to(folder).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch
            if entry.islnk():
                # A hard link depends on which of two names is read first.
                entry.type, entry.size = tarfile.REGTYPE, path.stat().st_size
            with path.open("rb") if entry.isreg() else io.BytesIO() as content:
                archive.addfile(entry, content if entry.isreg() else None)
    plain = packed.getvalue()
    blob = Blob(media_type=LAYER, content=gzip.compress(plain, 9, mtime=0))
    return blob, f"sha256:{hashlib.sha256(plain).hexdigest()}"


def archive(tag: str, top: Blob, blobs: Iterable[Blob], epoch: int) -> bytes:
    """Return a layout as a tar file.

    Args:
        tag: What the manifest or index `top` is called.
        blobs: All others.
    """
    named = {
        **top.descriptor,
        "annotations": {"org.opencontainers.image.ref.name": tag},
    }
    files = {
        "oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
        "index.json": json.dumps(
            {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}, sort_keys=True
        ).encode(),
        **{f"blobs/{blob.digest.replace(':', '/')}": blob.content for blob in (top, *blobs)},
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as made:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            made.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def chart(about: Mapping[str, Any], packed: bytes, epoch: int) -> bytes:
    """Return a packed chart as `helm push` sends it, as a layout.

    Args:
        about: What its Chart.yaml says.
    """
    config = document(HELM_CONFIG, about)
    content = Blob(media_type=HELM_LAYER, content=packed)
    annotations = {
        "org.opencontainers.image.created": moment(epoch),
        "org.opencontainers.image.description": about["description"],
        "org.opencontainers.image.title": about["name"],
        "org.opencontainers.image.version": about["version"],
    }
    top = manifest(config, [content], annotations)
    return archive(about["version"], top, (config, content), epoch)
