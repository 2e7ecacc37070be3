"""Errors the EC2 API would give, where the emulator would crash."""

from typing import Any

from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from infra.local.aws.moto_patches import Repairs
from infra.local.ec2.refusals import ApiError


def _error(response: Any, code: str, message: str) -> Any:
    error = EC2ClientError(code, message)
    _, headers, body = response.serialized(ActionResult(error))
    headers, body = response._enrich_response({**headers, "status": "400"}, body)
    return 400, headers, body


def repair(repairs: Repairs) -> None:
    """Answer what is not emulated with UnsupportedOperation."""
    stock = repairs.stock(EC2Response, "call_action")
    for name in ("serialized", "_enrich_response", "_get_action"):
        repairs.stock(BaseResponse, name)

    def call_action(self: Any) -> Any:
        try:
            return stock(self)
        except ApiError as refused:
            return _error(self, refused.code, refused.message)
        except NotImplementedError as problem:  # moto's word for a call it does not emulate
            text = f"{self._get_action()} is not emulated here: {problem}"
            return _error(self, "UnsupportedOperation", text)

    repairs.replace(EC2Response, "call_action", call_action)
