"""How a test speaks to a program of its own: commands come as lines of JSON, `{"id":1,"do":"rpc",...}`; what is answered
and what happens goes out the same way, `{"id":1,"ok":...}`, `{"id":1,"error":{...}}`, `{"event":"connected",...}`."""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time


def tell(event, **details):
    """Tells the test that something has happened."""
    say({"event": event, **details})


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def serve(commands):
    """Carries out commands by name until the test has no more."""
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(carry_out(commands, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


async def carry_out(commands, command):
    number, name = command.pop("id"), command.pop("do")
    try:
        say({"id": number, "ok": await commands[name](**command)})
    except Exception as error:
        message = getattr(error, "message", None) or str(error) or type(error).__name__
        say({"id": number, "error": {"code": getattr(error, "code", 0), "message": message}})


def sign(identity):
    """A token as a site's own back end would sign it (HS256)."""

    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    head = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    claims = {"sub": identity["user"], "exp": int(time.time()) + identity.get("ttl_s", 3600)}
    signed = f"{head}.{part(json.dumps(claims).encode())}"
    return f"{signed}.{part(hmac.digest(identity['secret'].encode(), signed.encode(), hashlib.sha256))}"
