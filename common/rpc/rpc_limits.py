"""What a message of gRPC may take, the same at both ends of a connection."""

MAX_MESSAGE = (1 << 20) + (1 << 16)
"""Longest message in bytes: a chunk of 1 MiB and what surrounds it."""

READ_AHEAD = (
    # Else gRPC guesses what a connection needs, and keeps up to hundreds of MiB for a reader that waits for its disk.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 22),
)
"""gRPC's channel arguments for what it takes of a stream before it is read: 4 MiB, besides the message that comes.

That is more than 1 Gbit/s delivers in the 20 ms until a peer hears that something was read.
"""
