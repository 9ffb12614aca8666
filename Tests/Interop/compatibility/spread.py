"""A gRPC server that gives each call to another of several servers, in turn. It prints its address when it is ready.

usage: spread.py HOST:PORT HOST:PORT...

A TCP proxy would keep all calls of a client at one server. This one looks at no message: each call is a stream of bytes
both ways, which is what gRPC sends for calls of any shape.
"""

import asyncio
import itertools
import sys

import grpc

# Fields that gRPC itself writes.
OWN_FIELDS = ("grpc-", ":", "user-agent", "te", "content-type")


class Spread(grpc.GenericRpcHandler):
    """Answers every method by a call of the next server."""

    def __init__(self, addresses):
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channels = [grpc.aio.insecure_channel(address, options) for address in addresses]
        self.turns = itertools.cycle(self.channels)
        self.counts = {address: 0 for address in addresses}
        self.names = dict(zip(map(id, self.channels), addresses))

    def service(self, details):
        method = details.method

        async def answer(requests, context):
            channel = next(self.turns)
            self.counts[self.names[id(channel)]] += 1
            metadata = [
                (key, value) for key, value in context.invocation_metadata() if not key.startswith(OWN_FIELDS)
            ]
            call = channel.stream_stream(method)(requests, metadata=metadata, timeout=context.time_remaining())
            try:
                async for message in call:
                    yield message
            except grpc.aio.AioRpcError as error:
                context.set_trailing_metadata(
                    [(key, value) for key, value in error.trailing_metadata() or () if not key.startswith(OWN_FIELDS)]
                )
                await context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(answer)


async def serve(addresses):
    spread = Spread(addresses)
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((spread,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"spread ready on 127.0.0.1:{port}", flush=True)
    try:
        await server.wait_for_termination()
    finally:
        print("calls: " + ", ".join(f"{count} at {name}" for name, count in spread.counts.items()), file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] == "--help":
        sys.exit(__doc__)
    asyncio.run(serve(sys.argv[1:]))
