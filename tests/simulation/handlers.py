"""The handlers of a service, as gRPC's server would have them behind its interceptor."""

from types import SimpleNamespace
from typing import Any

import grpc


class Server:
    """Stands in for gRPC's server while servicers are added."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, _: object) -> None:
        """Take nothing; the handlers come by name too."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        self.handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}

    async def behind(self, gate: grpc.aio.ServerInterceptor) -> dict[str, Any]:
        """Return the handlers as the interceptor lets callers have them."""

        async def guarded(method: str, handler: object) -> object:
            async def continuation(_: object) -> Any:  # noqa: ANN401 - gRPC's handler
                return handler

            details: Any = SimpleNamespace(method=method, invocation_metadata=())
            return await gate.intercept_service(continuation, details)

        return {method: await guarded(method, handler) for method, handler in self.handlers.items()}
