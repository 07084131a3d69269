"""Calls one RPC by grpclib, from code that its plugin made of the .proto files alone.

python -S grpclib_ask.py MODULE SERVICE METHOD HOST PORT CA CERTIFICATE KEY < JSON
"""

import asyncio
import importlib
import json
import ssl
import sys

from google.protobuf.json_format import MessageToDict, ParseDict
from grpclib.client import Channel  # type: ignore[import-not-found] # a test installs it in a folder of its own
from grpclib.exceptions import GRPCError  # type: ignore[import-not-found] # as above


async def ask(words: list[str]) -> dict[str, object]:
    """Call the RPC; return its answer, or the status of a refusal."""
    module, service, method, host, port, ca, certificate, key = words
    tls = ssl.create_default_context(cafile=ca)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols(["h2"])
    messages = importlib.import_module(f"veiltab.v1.{module}_pb2")
    stubs = importlib.import_module(f"veiltab.v1.{module}_grpc")
    request = ParseDict(json.load(sys.stdin), getattr(messages, f"{method}Request")())
    async with Channel(host, int(port), ssl=tls) as channel:
        try:
            answer = await getattr(getattr(stubs, f"{service}Stub")(channel), method)(request, timeout=15)
        except GRPCError as error:
            return {"refused": error.status.name}
    return {"answer": MessageToDict(answer)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(ask(sys.argv[1:]))))
