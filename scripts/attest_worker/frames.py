"""Frames of the worker protocol: 16 bytes of header ("ATST", version, length), then the payload."""
import json
import struct

MAGIC = b"ATST"
VERSION = 1
LARGEST = 256 << 20
HEADER = struct.Struct("<4sIQ")


class FrameError(Exception):
    """The peer does not speak the protocol, or went away inside a frame."""


def _read(sock, count):
    chunks = []
    while count > 0:
        chunk = sock.recv(min(count, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def read_message(sock):
    """The next message, or None where the peer closed the socket between frames."""
    header = _read(sock, HEADER.size)
    if not header:
        return None
    if len(header) < HEADER.size:
        raise FrameError("stream ended inside a frame's header")
    magic, version, length = HEADER.unpack(header)
    if magic != MAGIC:
        raise FrameError(f"frame starts with {magic!r}, not {MAGIC!r}")
    if version != VERSION:
        raise FrameError(f"frame has version {version}, this program speaks {VERSION}")
    if length > LARGEST:
        raise FrameError(f"frame of {length} bytes, the limit is {LARGEST}")
    payload = _read(sock, length)
    if len(payload) < length:
        raise FrameError(f"stream ended inside a frame of {length} bytes")
    return json.loads(payload)


def write_message(sock, message):
    payload = json.dumps(message).encode()
    sock.sendall(HEADER.pack(MAGIC, VERSION, len(payload)) + payload)
