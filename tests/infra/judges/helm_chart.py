"""Helm's own engine: does it make of the chart's OCI artefact what infra/cluster says?

Source: https://pkg.go.dev/helm.sh/helm/v3/pkg/engine (v3.22.0, 2026-11); `helm template` and
`helm install` render so.
"""

import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from infra.local.demo.problem import Problem
from tests.infra.judges.programs import CACHE, HERE, run
from tests.infra.judges.verdicts import Verdict
from tests.real.build import build
from tools.manifests import chart
from tools.release import make_release

_CLUSTER, _IMAGE = "prod", "registry.example.com/dovetail/forwarder:1.2.3"
_GIVEN: Final = (f"cluster={_CLUSTER}", f"image={_IMAGE}")
# What is set, and a part of what Helm then says.
_REFUSED: Final = (
    ((), "give --set"),
    ((f"cluster={_CLUSTER}",), "give --set image"),
    ((f"image={_IMAGE}",), "give --set-string cluster"),
    ((*_GIVEN, "clusters=x"), "clusters"),
    ((f"image={_IMAGE}", "cluster=no spaces"), "cluster"),
    ((f"cluster={_CLUSTER}", "image=-x"), "image"),
    # --set reads a number; such a cluster needs --set-string.
    ((f"image={_IMAGE}", "cluster=2024"), "want string"),
    ((*_GIVEN, "replicas=many"), "want integer"),
)
# Each value of the chart is set in one of these; an object is added to what is there by default.
_SETS: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"replicas": 2, "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}]},
    {"resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}},
    {"tolerations": [], "nodeSelector": {"eks.amazonaws.com/nodegroup": "system"}},
    {"affinity": {"podAntiAffinity": {}}, "priorityClassName": "platform"},
    {"egressPolicy": True, "metricsPolicy": True},
    {"imagePullSecrets": [{"name": "mirror"}], "podAnnotations": {"a/b": "'c': {d}"}},
    {"tracing": True, "apiTimeoutSeconds": 5, "bus": "arn:aws:events:eu-west-1:1:event-bus/x"},
    {"livenessProbe": {"periodSeconds": 5}, "readinessProbe": {"periodSeconds": 1}},
    {
        "startupProbe": {"failureThreshold": 9},
        "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "terminationGracePeriodSeconds": 30,
    },
)


def ask() -> Verdict:
    """Ask how each set of values is rendered.

    Raises:
        Problem: If there is no Go, or its module does not build.
    """
    module = HERE / "helm"
    program = build(module, CACHE / "helm-judge", ["-ldflags=-s -w", "."])
    modes = [{"set": _GIVEN, "strict": strict, "lint": lint} for strict, lint in _MODES]
    sets = [{"set": _GIVEN, "values": values, "strict": True} for values in _SETS]
    questions = [*modes, *sets, *({"set": given} for given, _ in _REFUSED)]
    with tempfile.TemporaryDirectory(prefix="dovetail-chart-") as made:
        packed, file = Path(made) / "dovetail.tgz", Path(made) / "questions.json"
        packed.write_bytes(_pulled())
        file.write_text(json.dumps(questions), encoding="utf-8")
        said = json.loads(run([str(program), str(packed), str(file)]))
    disagreements = [
        f"{asked}: {wrong}"
        for asked, values, answer in zip(
            (*modes, *sets), (*([{}] * len(modes)), *_SETS), said, strict=False
        )
        for wrong in _wrong(answer, values)
    ]
    unset = chart.VALUES.keys() - {name for values in _SETS for name in values}
    disagreements += [f"{name} is in no set of values" for name in sorted(unset)]
    for (given, part), answer in zip(_REFUSED, said[len(modes) + len(sets) :], strict=True):
        if part not in answer["error"]:
            disagreements.append(f"--set {','.join(given)}: {answer['error'] or 'is taken'}")
    version = re.search(r"helm\.sh/helm/v3 v(\S+)", (module / "go.mod").read_text("utf-8"))
    assert version is not None, "the module file requires Helm"
    return Verdict(version=version[1], asked=len(questions), disagreements=tuple(disagreements))


_MODES: Final = ((False, False), (True, False), (False, True))


def _pulled() -> bytes:
    """Return the packed chart, found in its OCI artefact as `helm pull` finds it."""
    release = make_release.Release(version=chart.version(), epoch=0, page=Path(), commit="")
    layout = io.BytesIO(make_release.chart_layout(release, make_release.chart_archive(release)))
    with tarfile.open(fileobj=layout) as archive:

        def read(name: str) -> bytes:
            member = archive.extractfile(name)
            assert member is not None, "a layout has files alone"
            return member.read()

        (top,) = json.loads(read("index.json"))["manifests"]
        manifest = json.loads(read(f"blobs/{top['digest'].replace(':', '/')}"))
        (layer,) = manifest["layers"]
        if layer["mediaType"] != "application/vnd.cncf.helm.chart.content.v1.tar+gzip":
            raise Problem(f"{layer['mediaType']}: helm pull takes no such layer")
        return read(f"blobs/{layer['digest'].replace(':', '/')}")


def _wrong(answer: dict[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield how what was rendered differs from the manifests of infra/cluster, with some values."""
    if answer["error"]:
        yield answer["error"]
        return
    rendered = {name.rpartition("/")[2]: text for name, text in answer["templates"].items()}
    objects = [_documents(text) for text in answer["crds"]]
    if objects != [_documents((chart.SOURCE / name).read_text("utf-8")) for name in chart.CRDS]:
        yield "the definitions are others"
    wanted = {
        **{name: _documents((chart.SOURCE / name).read_text("utf-8")) for name in chart.PLAIN},
        chart.FORWARDER: [_forwarder(values)],
    }
    for value, name in chart.OPTIONAL.items():
        there = _documents((chart.SOURCE / name).read_text("utf-8")) if values.get(value) else []
        wanted[name.replace("/", "_")] = there
    for name, documents in wanted.items():
        if _documents(rendered.pop(name)) != documents:
            yield f"{name} is another"
    (settings,) = _documents(rendered.pop("configmap.yaml"))
    expected = {
        "DOVETAIL_API_TIMEOUT_SECONDS": str(values.get("apiTimeoutSeconds", 10)),
        "DOVETAIL_CLUSTER": _CLUSTER,
        "DOVETAIL_TRACING": str(values.get("tracing", False)).lower(),
    }
    if settings["data"] != expected:
        yield f"configmap.yaml has {settings['data']}"
    yield from (f"{name} is rendered, too" for name in rendered)


def _forwarder(values: Mapping[str, Any]) -> dict[str, Any]:
    document = chart.deployment()
    (container,) = document["spec"]["template"]["spec"]["containers"]
    container["image"] = _IMAGE
    for name, default in chart.defaults().items():
        if path := chart.VALUES[name].path:
            chart.put(document, path, _added(default, values.get(name, default)))
    return document


def _added(default: Any, given: Any) -> Any:
    """Return a value as Helm adds what is given to a default: objects key by key."""
    if isinstance(default, dict) and isinstance(given, dict):
        return {
            **default,
            **{key: _added(default.get(key), entry) for key, entry in given.items()},
        }
    return given


def _documents(text: str) -> list[Any]:
    return [document for document in yaml.safe_load_all(text) if document]
