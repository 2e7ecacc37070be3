"""The cloud assembly as a zip: what CloudFormation or Terraform deploys without Node.js and CDK.

Two templates with parameters, the functions' code and the Terraform module. What the templates make
of their parameters is what the app synthesises with the same options (`parametrize`).
"""

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields

from infra.aws.app import build_app
from infra.aws.functions import FUNCTIONS
from infra.aws.names import CONTROL_PLANE_STACK, cluster_stack_name
from infra.local.aws.templates.assembly import zip_of
from shared.settings import PREFIX
from tools import make_bundle
from tools.release.options import CLUSTER, IMAGE, OPTIONS
from tools.release.parametrize import parametrize

ROOT: Final = Path(__file__).parents[2]
TERRAFORM: Final = ROOT / "infra" / "terraform"
TEMPLATES: Final = {
    "control_plane.template.json": CONTROL_PLANE_STACK,
    "cluster.template.json": cluster_stack_name(CLUSTER),
}
FUNCTIONS_ZIP: Final = "functions.zip"
_PLAIN: Final = {
    "bundle": "code",
    "clusters": CLUSTER,
    "forwarder_image": IMAGE,
    "max_price_per_hour": f"{CLUSTER}:none",
}
_NOT_OURS: Final = ("Parameters", "Rules")


def templates() -> dict[str, dict[str, Any]]:
    """Return both templates by the name of their file."""
    plain = synthesized({})
    seen = [(it, synthesized(it.context) if it.context else plain) for it in OPTIONS]
    made = {
        name: parametrize(plain[name], [(option, found[name]) for option, found in seen])
        for name in TEMPLATES
    }
    _name_the_code(made["control_plane.template.json"])
    _open_settings(made["control_plane.template.json"])
    return made


def synthesized(context: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what the app makes of some options, without what its own bootstrap needs."""
    with tempfile.TemporaryDirectory(prefix="dovetail-synth-") as folder:
        # Its own checks of the templates take longer than all else; `make test` has them.
        os.environ["CDK_VALIDATION"] = "false"
        build_app({**_PLAIN, **context}, outdir=folder).synth()
        found = {
            name: json.loads((Path(folder) / f"{stack}.template.json").read_text("utf-8"))
            for name, stack in TEMPLATES.items()
        }
    return {
        name: {key: value for key, value in template.items() if key not in _NOT_OURS}
        for name, template in found.items()
    }


def _name_the_code(template: dict[str, Any]) -> None:
    """Ask for the place of the functions' code, which the CDK would have uploaded."""
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            resource["Properties"]["Code"] = {
                "S3Bucket": {"Ref": "CodeBucket"},
                "S3Key": {"Ref": "CodeKey"},
            }
    template["Parameters"] |= {
        "CodeBucket": {"Type": "String", "Description": "bucket of this Region with functions.zip"},
        "CodeKey": {
            "Type": "String",
            "Description": "key of functions.zip, another for each release",
        },
    }


def _open_settings(template: dict[str, Any]) -> None:
    """Make a parameter of each setting of the functions; its default is the setting's."""
    for resource in template["Resources"].values():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        variables = resource["Properties"]["Environment"]["Variables"]
        for name in settings():
            variable = f"{PREFIX}{name.upper()}"
            if variable in variables:
                parameter = setting_parameter(name)
                template["Parameters"][parameter] = {
                    "Type": "String",
                    "Default": variables[variable],
                    "Description": f"setting {name}",
                }
                variables[variable] = {"Ref": parameter}


def settings() -> tuple[str, ...]:
    """Return the settings of functions that users change, sorted."""
    found = {
        field.name for spec in FUNCTIONS for field in fields(spec.settings) if not field.required
    }
    return tuple(sorted(found - {"cluster_parameters"}))


def setting_parameter(name: str) -> str:
    """Return the parameter of a setting."""
    return "".join(word.capitalize() for word in name.split("_"))


def functions_zip(bundle: Path) -> bytes:
    """Return the functions' code, made as `cdk deploy` makes it, as Lambda takes it."""
    make_bundle.make(make_bundle.stage(), bundle)
    return zip_of(bundle)


def archive(version: str, made: Mapping[str, Mapping[str, Any]], code: bytes) -> bytes:
    """Return the assembly: one folder, named as the release."""
    files = {name: _text(template) for name, template in made.items()}
    files[FUNCTIONS_ZIP] = code
    for path in sorted(TERRAFORM.rglob("*")):
        if path.is_file() and path.suffix in {".tf", ".md", ".json"}:
            files[f"terraform/{path.relative_to(TERRAFORM).as_posix()}"] = path.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"dovetail-{version}/{name}")
            entry.external_attr = 0o644 << 16
            entry.compress_type = (
                zipfile.ZIP_STORED if name == FUNCTIONS_ZIP else zipfile.ZIP_DEFLATED
            )
            zipped.writestr(entry, content)
    return packed.getvalue()


def _text(template: Mapping[str, Any]) -> bytes:
    return (json.dumps(template, indent=1) + "\n").encode()
