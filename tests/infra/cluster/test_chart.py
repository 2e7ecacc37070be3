"""The chart with its default values is the manifests of infra/cluster."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from infra.aws.config import ConfigError, read_config
from tools.manifests import chart as helm
from tools.manifests.chart import CLUSTER_VALUE, IMAGE_VALUE, SOURCE

_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_VALUE = re.compile(r"\{\{ toJson \.Values\.(\w+) \}\}")


def _documents(path: Path) -> list[Any]:
    """Return the objects of a file, the default of each value in its place."""
    given = helm.defaults()
    text = _VALUE.sub(lambda found: json.dumps(given[found[1]]), path.read_text())
    text = re.sub(r"^\{\{- (if|end).*\n", "", text, flags=re.MULTILINE)
    return list(yaml.safe_load_all(text))


def _differences(mine: Any, source: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(mine, dict) and isinstance(source, dict):
        for key in sorted(mine.keys() | source.keys()):
            yield from _differences(mine.get(key), source.get(key), f"{path}.{key}")
    elif isinstance(mine, list) and isinstance(source, list) and len(mine) == len(source):
        for number, (entry, other) in enumerate(zip(mine, source, strict=True)):
            yield from _differences(entry, other, f"{path}[{number}]")
    elif mine != source:
        yield path, mine, source


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a chart that was just made, over an older one."""
    folder = tmp_path_factory.mktemp("build") / "chart"
    folder.mkdir()
    (folder / "of_a_former_release.yaml").write_text("{}")
    helm.write(folder)
    return folder


def test_the_chart_has_the_files_of_this_release_only(chart: Path) -> None:
    found = {str(path.relative_to(chart)) for path in chart.rglob("*") if path.is_file()}

    assert found == set(helm.chart_files())


def test_every_manifest_is_in_the_chart_and_differs_in_the_image_only(chart: Path) -> None:
    for name in (*helm.CRDS, *helm.PLAIN, *helm.OPTIONAL.values(), helm.FORWARDER):
        source = SOURCE / name
        folder = "crds" if name in helm.CRDS else "templates"
        made = chart / folder / name.replace("/", "_")
        found = [
            (path, mine, here)
            for path, mine, here in _differences(_documents(made), _documents(source))
            # What the manifest does not have, nothing by default.
            if mine not in ({}, [])
        ]
        if name == helm.FORWARDER:
            image = "[0].spec.template.spec.containers[0].image"
            # Names under .invalid never resolve (RFC 6761): no foreign image is ever pulled.
            placeholder = f"registry.invalid/dovetail/forwarder:{helm.version()}"
            assert found == [(image, IMAGE_VALUE, placeholder)]
        else:
            assert found == []


def test_each_value_is_used_and_has_its_type_in_the_schema(chart: Path) -> None:
    text = "".join(path.read_text() for path in (chart / "templates").iterdir())
    schema = json.loads((chart / "values.schema.json").read_text())
    (values,) = _documents(chart / "values.yaml")

    used = set(re.findall(r"\.Values\.(\w+)", text))
    assert used == set(values) == schema["properties"].keys() - {"global"}
    assert {CLUSTER_VALUE, IMAGE_VALUE} <= set(_ACTION.findall(text))
    jsonschema.validate(values, schema)


def test_the_forwarder_reads_the_config_map_of_the_chart(chart: Path) -> None:
    (config,) = _documents(chart / "templates" / "configmap.yaml")
    (deployment,) = _documents(chart / "templates" / "forwarder.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert container["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
    assert config["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert config["data"] == {
        "DOVETAIL_API_TIMEOUT_SECONDS": "10",
        "DOVETAIL_CLUSTER": CLUSTER_VALUE,
        "DOVETAIL_TRACING": "false",
    }


@pytest.mark.parametrize("name", ["prod", "a_b-C9", "a'b", "x y", "{{", "9", ""])
def test_a_name_the_schema_takes_is_one_the_stack_takes(chart: Path, name: str) -> None:
    schema = json.loads((chart / "values.schema.json").read_text())
    taken = jsonschema.Draft202012Validator(schema).is_valid({"cluster": name})
    try:
        read_config({"clusters": name, "max_price_per_hour": f"{name}:none" if name else ""})
        attached = True
    except ConfigError:
        attached = False

    assert taken == attached


def test_no_value_can_leave_its_quotes(chart: Path) -> None:
    validator = jsonschema.Draft202012Validator(
        json.loads((chart / "values.schema.json").read_text())
    )
    image = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/dovetail/forwarder:0.1.0"

    assert validator.is_valid({"cluster": "prod", "image": image})
    assert validator.is_valid({"image": f"{image.rpartition(':')[0]}@sha256:{'0' * 64}"})
    for bad in ("a'b", "a\nb", 'a"b', "a b", "{{.}}"):
        assert not validator.is_valid({"image": bad})
    assert not validator.is_valid({"imagee": image})


def test_what_helm_would_take_for_a_template_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "cluster"
    shutil.copytree(SOURCE, copy)
    monkeypatch.setattr(helm, "SOURCE", copy)
    forwarder = copy / helm.FORWARDER
    forwarder.write_text(forwarder.read_text().replace("image: registry.invalid/", "image: "))
    with pytest.raises(ValueError, match=r"forwarder.yaml: expected exactly one line"):
        helm.chart_files()
    (copy / "access.yaml").write_text("a: '{{ .Values.b }}'\n")
    with pytest.raises(ValueError, match=r"access.yaml: '\{\{' would be a template"):
        helm.chart_files()
