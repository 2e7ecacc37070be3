"""Errors the EC2 API would give, where the emulator would crash or has no limit."""

from typing import Any

from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs
from infra.local.ec2.refusals import ApiError


def _error(response: Any, code: str, message: str, status: int) -> Any:
    error = EC2ClientError(code, message)
    _, headers, body = response.serialized(ActionResult(error))
    headers, body = response._enrich_response({**headers, "status": str(status)}, body)
    return status, headers, body


def repair(repairs: Repairs, world: World) -> None:
    """Answer what is not emulated with UnsupportedOperation, and fail or throttle when asked to."""
    stock = repairs.stock(EC2Response, "call_action")
    for name in ("serialized", "_enrich_response", "_get_action"):
        repairs.stock(BaseResponse, name)

    def call_action(self: Any) -> Any:
        action = self._get_action()
        if not world.throttles.allow(action):
            return _error(self, "RequestLimitExceeded", "Request limit exceeded.", 503)
        fault = world.faults.next(action)
        if fault and not fault.after:
            return _error(self, fault.code, "Ordered by a control verb.", fault.status)
        try:
            answer = stock(self)
        except ApiError as refused:
            return _error(self, refused.code, refused.message, 400)
        except NotImplementedError as problem:  # moto's word for a call it does not emulate
            text = f"{action} is not emulated here: {problem}"
            return _error(self, "UnsupportedOperation", text, 400)
        if fault:
            return _error(self, fault.code, "Done, but the answer is lost.", fault.status)
        return answer

    repairs.replace(EC2Response, "call_action", call_action, parameters=("self",))
