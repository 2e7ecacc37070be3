"""Helm's own engine: does it make of the chart what infra/cluster says?

Source: https://pkg.go.dev/helm.sh/helm/v3/pkg/engine (v3.22.0, 2026-11); `helm template` and
`helm install` render so.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.infra.judges.programs import CACHE, HERE, run
from tests.infra.judges.verdicts import Verdict
from tests.real.build import build
from tools.manifests import chart

_CLUSTER, _IMAGE = "prod", "registry.example.com/dovetail/forwarder:1.2.3"
_GIVEN: Final = (f"cluster={_CLUSTER}", f"image={_IMAGE}")
# What is set, and a part of what Helm then says.
_REFUSED: Final = (
    ((), "give --set"),
    ((f"cluster={_CLUSTER}",), "give --set image"),
    ((f"image={_IMAGE}",), "give --set cluster"),
    ((*_GIVEN, "clusters=x"), "clusters"),
    ((f"image={_IMAGE}", "cluster=no spaces"), "cluster"),
    ((f"cluster={_CLUSTER}", "image=-x"), "image"),
    # --set reads a number; such a cluster needs --set-string.
    ((f"image={_IMAGE}", "cluster=2024"), "want string"),
)


def ask() -> Verdict:
    """Ask how each set of values is rendered.

    Raises:
        Problem: If there is no Go, or its module does not build.
    """
    module = HERE / "helm"
    program = build(module, CACHE / "helm-judge", ["-ldflags=-s -w", "."])
    modes = [{"set": _GIVEN, "strict": strict, "lint": lint} for strict, lint in _MODES]
    questions = [*modes, *({"set": given} for given, _ in _REFUSED)]
    with tempfile.TemporaryDirectory(prefix="dovetail-chart-") as made:
        chart.write(Path(made) / "dovetail")
        file = Path(made) / "questions.json"
        file.write_text(json.dumps(questions), encoding="utf-8")
        said = json.loads(run([str(program), str(Path(made) / "dovetail"), str(file)]))
    disagreements = [
        f"{mode}: {wrong}"
        for mode, answer in zip(modes, said, strict=False)
        for wrong in _wrong(answer)
    ]
    for (given, part), answer in zip(_REFUSED, said[len(modes) :], strict=True):
        if part not in answer["error"]:
            disagreements.append(f"--set {','.join(given)}: {answer['error'] or 'is taken'}")
    version = re.search(r"helm\.sh/helm/v3 v(\S+)", (module / "go.mod").read_text("utf-8"))
    assert version is not None, "the module file requires Helm"
    return Verdict(version=version[1], asked=len(questions), disagreements=tuple(disagreements))


_MODES: Final = ((False, False), (True, False), (False, True))


def _wrong(answer: dict[str, Any]) -> Iterator[str]:
    """Yield how what was rendered differs from the manifests of infra/cluster."""
    if answer["error"]:
        yield answer["error"]
        return
    rendered = {name.rpartition("/")[2]: text for name, text in answer["templates"].items()}
    objects = [_documents(text) for text in answer["crds"]]
    if objects != [_documents((chart.SOURCE / name).read_text("utf-8")) for name in chart.CRDS]:
        yield "the definitions are others"
    for name in (*chart.PLAIN, chart.FORWARDER):
        source = (chart.SOURCE / name).read_text(encoding="utf-8")
        wanted = source.replace(f"{chart.IMAGE}:{chart.version()}", _IMAGE)
        if _documents(rendered.pop(name)) != _documents(wanted):
            yield f"{name} is another"
    (settings,) = _documents(rendered.pop("configmap.yaml"))
    if settings["data"] != {"DOVETAIL_CLUSTER": _CLUSTER}:
        yield f"configmap.yaml has {settings['data']}"
    yield from (f"{name} is rendered, too" for name in rendered)


def _documents(text: str) -> list[Any]:
    return [document for document in yaml.safe_load_all(text) if document]
