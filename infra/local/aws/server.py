"""The embedded AWS API: control verbs, our own services, then moto's, behind one port."""

import json
import logging
import os
from collections.abc import Iterable

from infra.local.aws.access.authentication import (
    Authentication,
    NotAuthenticError,
    answer_identity,
    asks_identity,
)
from infra.local.aws.clients import Access, use_access
from infra.local.aws.control import Control, ControlError, Json, ServiceError
from infra.local.aws.execution.front import InvokeFront
from infra.local.aws.listener import LOOPBACK, Application, Environ, Listener, StartResponse
from infra.local.aws.refusals import refuse, refuse_too_many, signed_service
from infra.local.aws.repairs import apply_repairs
from infra.local.aws.repairs.events import use_bus
from infra.local.aws.repairs.permissions import use_permissions
from infra.local.aws.service import Options, Services
from infra.local.aws.verbs import register

_LOG = logging.getLogger(__name__)
CONTROL_PREFIX = "/_dovetail/"


class AwsServer:
    """One server in this process. Only one can live in a process: moto's state is global."""

    def __init__(self, *, port: int = 0, options: Options | None = None) -> None:
        self._options = options or Options()
        self._listener = Listener(self._answer, port=port)
        self.port = self._listener.port
        url = f"http://{LOOPBACK}:{self.port}"
        self.access = Access.fresh(url, self._options.region)
        os.environ["MOTO_PORT"] = str(self.port)
        self.control = Control(url=url, region=self._options.region)
        use_access(self.access)
        apply_repairs()
        self._services = Services(self.control, self._options)
        use_bus(self._services.bus)
        use_permissions(self._services.permissions)
        register(self.control, self._services)
        self._install_ec2()
        self._moto = _moto_application()
        self._invocations = InvokeFront(self._services.invoker, self._services.deferred)
        self._authentication = Authentication(self.access, account_id=self.control.account_id)

    def start(self) -> None:
        self._services.start()
        self._listener.start()

    def stop(self) -> None:
        self._listener.stop()
        self.control.stop()
        self._services.stop()

    def _install_ec2(self) -> None:
        from infra.local.aws import ec2

        ec2.install(self.control)

    def _answer(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        try:
            caller = self._authentication.check(environ)
        except NotAuthenticError as error:
            return refuse(environ, start_response, "403 Forbidden", error.code, str(error))
        if path.startswith(CONTROL_PREFIX):
            return self._control(environ, start_response, path.removeprefix(CONTROL_PREFIX))
        if self._services.throttle.strikes(caller.arn, signed_service(environ)):
            return refuse_too_many(environ, start_response)
        if self._invocations.matches(environ):
            refused = self._refused(environ, "InvokeFunction")
            if refused is not None:
                return _json(start_response, "403 Forbidden", refused)
            return self._invocations(environ, start_response)
        if asks_identity(environ):
            return answer_identity(caller, environ, start_response)
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        service, _, operation = target.partition(".")
        if service in self.control.services:
            return self._extra_service(environ, start_response, service, operation)
        return self._moto(environ, start_response)

    def _control(
        self, environ: Environ, start_response: StartResponse, name: str
    ) -> Iterable[bytes]:
        try:
            answer = self.control.call(name, _json_body(environ))
        except ControlError as error:
            return _json(start_response, "400 Bad Request", {"error": str(error)})
        return _json(start_response, "200 OK", answer)

    def _refused(self, environ: Environ, operation: str) -> Json | None:
        """Record what a role does that moto does not see; return the refusal if it lacks it."""
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        lacking = self._services.permissions.check_call(authorization, operation)
        if lacking is None:
            return None
        return {"__type": "AccessDeniedException", "message": f"not authorized: {lacking}"}

    def _extra_service(
        self, environ: Environ, start_response: StartResponse, service: str, operation: str
    ) -> Iterable[bytes]:
        refused = self._refused(environ, operation)
        if refused is not None:
            return _json(start_response, "403 Forbidden", refused)
        try:
            answer = self.control.services[service](operation, _json_body(environ))
        except (ServiceError, ControlError) as error:
            code = error.code if isinstance(error, ServiceError) else "ValidationException"
            body = {"__type": code, "message": str(error)}
            return _json(start_response, "400 Bad Request", body)
        return _json(start_response, "200 OK", answer)


def _moto_application() -> Application:
    from moto.core.request import PRESERVED_HEADER_NAMES_ENVIRON_KEY
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    moto: Application = DomainDispatcherApplication(create_backend_app)

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        environ[PRESERVED_HEADER_NAMES_ENVIRON_KEY] = {}
        try:
            return moto(environ, start_response)
        except Exception as error:  # noqa: BLE001 - outermost: a crash in moto is one answer
            _LOG.warning("moto failed on %s", _operation(environ), exc_info=error)
            return _not_emulated(environ, start_response, error)

    return answer


def _operation(environ: Environ) -> str:
    target = environ.get("HTTP_X_AMZ_TARGET")
    return str(target or f"{environ['REQUEST_METHOD']} {environ['REQUEST_URI']}")


def _not_emulated(
    environ: Environ, start_response: StartResponse, error: Exception
) -> Iterable[bytes]:
    """Answer status 501, which SDKs report at once: 500 would be retried like a throttle."""
    message = f"the embedded AWS API cannot do this: {type(error).__name__}: {error}"
    return refuse(environ, start_response, "501 Not Implemented", "NotEmulated", message)


def _json_body(environ: Environ) -> Json:
    text = environ["wsgi.input"].read()
    try:
        body = json.loads(text) if text else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ControlError("the body is not a JSON object: send one, for example {}")
    return body


def _json(start_response: StartResponse, status: str, body: object) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps(body, default=str).encode()]
