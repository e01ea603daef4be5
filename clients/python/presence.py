"""Rollcall presence for a Python program, on the published Centrifuge SDK.

An example to copy, and a program to try a server with:

    python presence.py ws://127.0.0.1:8080/connection/websocket --token-command "rollcall token 7"

prints changes of friends. Friends are a dictionary that is kept up to date. Lost connections are reopened with the SDK's
backoff (one to twenty seconds, with jitter) until the server forbids it. After ten failed attempts the listener is called with
"stuck"; retries continue.

Deliberately absent: signing tokens (the site's back end does), storing messages, pings (the server pings, the SDK answers).
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from centrifuge import (
    CentrifugeError,
    Client,
    ClientEventHandler,
    ClientInfo,
    ClientState,
    ReplyError,
    SubscriptionEventHandler,
    SubscriptionState,
)

User = dict[str, Any]
#: Kind of change, and its subject: "connected", "connecting", "stuck", "disconnected", "snapshot", "changed", "removed", "me", "typing",
#: "joined", "left".
Listener = Callable[[str, Any], None]

RECONNECT_S_MIN = 1.0
RECONNECT_S_MAX = 20.0
#: Failed attempts until "stuck".
TRIES_UNTIL_STUCK = 10
#: Users per `track` command: limited by the server's message size.
TRACKED_PER_COMMAND = 500
#: Retry delay after a temporary error.
RETRY_S = 1.0


def is_online(user: User | None) -> bool:
    """`pending` counts: after a restart of the server the user may still reconnect."""
    return user is not None and user["status"] != "offline"


def is_newer(known: User | None, user: User) -> bool:
    """Whether `user` replaces the known state. Version 0 always does: the user is no longer visible."""
    return known is None or user["version"] == 0 or user["version"] >= known["version"]


def is_refusal(error: Exception) -> bool:
    """A permanent error, as opposed to a lost connection or a busy server."""
    return isinstance(error, ReplyError) and error.code > 100 and error.code != 111 and not error.temporary


class Rollcall:
    """One connection of one user on one device."""

    def __init__(
        self,
        url: str,
        get_token: Callable[[], Awaitable[str]],
        *,
        device: str | None = None,
        platform: str = "computer",
        listener: Listener = lambda what, about: None,
    ) -> None:
        self.device = device or secrets.token_hex(12)
        self.friends: dict[str, User] = {}
        self.tracked: dict[str, User] = {}
        self.me: User | None = None
        self.typists: set[tuple[str, str | None]] = set()
        #: Failed attempts since the last connection or `connect`.
        self.tries = 0
        self._self_id: str | None = None
        self._wanted: set[str] = set()
        # No longer wanted, but the server may still send their changes.
        self._leaving: set[str] = set()
        # Parts of an incomplete snapshot.
        self._parts: list[User] | None = None
        # Number of the connection: work of an earlier one is abandoned.
        self._connections = 0
        self._listener = listener
        # The SDK sends this object on each connect.
        self._connect_data = {"device": self.device, "platform": platform, "app_state": "foreground"}
        self._sent_app_state = "foreground"
        # Unconfirmed status request: method, data, outcome. The server stores confirmed ones; sending them again at each
        # reconnect would overwrite what another device has set since.
        self._pending_status: tuple[str, dict[str, Any], asyncio.Future[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.client = Client(
            url,
            events=_Events(self),
            get_token=get_token,
            data=self._connect_data,
            min_reconnect_delay=RECONNECT_S_MIN,
            max_reconnect_delay=RECONNECT_S_MAX,
        )

    async def connect(self) -> None:
        """Reconnects until `close`, or until the server forbids it."""
        await self.client.connect()

    @property
    def is_stuck(self) -> bool:
        """Ten attempts failed. Retries continue."""
        return self.tries >= TRIES_UNTIL_STUCK

    async def close(self) -> None:
        """Sends a close frame first, so that friends see the change at once."""
        await self.client.disconnect()

    async def set_status(self, status: str, text: str | None = None, until: int | None = None) -> None:
        """Sets the user's status on all devices, until it is cleared, replaced or `until` (seconds since 1970). Without a
        connection it is sent as soon as there is one. Returns when the server has confirmed it."""
        details = {"text": text, "until": until}
        given = {name: value for name, value in details.items() if value is not None}
        await self._request_status("status.set", {"status": status, **given})

    async def clear_status(self) -> None:
        """The status is derived from the devices again."""
        await self._request_status("status.clear", {})

    async def set_app_state(self, state: str) -> None:
        """"foreground", "background" or "inactive"."""
        self._connect_data["app_state"] = state
        await self._send_app_state()

    async def typing(self, on: bool, *, to: str | None = None, room: str | None = None) -> None:
        """To a user or a room."""
        await self.rpc("typing", {"to": to, "on": on} if room is None else {"room": room, "on": on})

    async def track(self, users: Iterable[str]) -> None:
        """Adds users who are not friends to `tracked`, if they are visible. Kept across reconnects. If the server refuses,
        as for too many, none of them is tracked."""
        ids = [user for user in dict.fromkeys(users) if user not in self._wanted or user in self._leaving]
        self._wanted.update(ids)
        self._leaving.difference_update(ids)
        if self._is_connected():
            try:
                await self._track(ids)
            except CentrifugeError as error:
                # The next connection requests them.
                if self._is_connected() or is_refusal(error):
                    await self._untrack_quietly(ids)
                    raise

    async def untrack(self, users: Iterable[str]) -> None:
        ids = list(dict.fromkeys(users))
        # Until the server has stopped sending them, their changes would be taken for new friends.
        self._leaving.update(self._wanted.intersection(ids))
        for user in ids:
            self.tracked.pop(user, None)
        for part in _chunks(ids):
            try:
                if self._is_connected():
                    await self.rpc("untrack", {"users": part})
            except CentrifugeError:
                # A lost connection tracks nothing.
                if self._is_connected():
                    raise
            self._forget(part)

    async def _untrack_quietly(self, ids: list[str]) -> None:
        try:
            await self.untrack(ids)
        except CentrifugeError:
            pass  # They are hidden; the end of the connection untracks them.

    def _forget(self, ids: Iterable[str]) -> None:
        """Except those that are wanted again."""
        gone = self._leaving.intersection(ids)
        self._wanted -= gone
        self._leaving -= gone

    def _is_connected(self) -> bool:
        return self.client.state is ClientState.CONNECTED

    async def devices(self) -> list[dict[str, Any]]:
        return (await self.rpc("devices.list", {})).get("devices", [])

    async def sign_out(self, device: str) -> None:
        """Closes the connections of a device, which does not reconnect automatically."""
        await self.rpc("devices.sign_out", {"device": device})

    async def privacy(self) -> dict[str, Any]:
        return await self.rpc("privacy.get", {})

    async def set_privacy(self, **changes: Any) -> None:
        """`status`, `last_seen`, `never`; missing ones are unchanged."""
        await self.rpc("privacy.set", changes)

    async def room(self, name: str) -> Room:
        """Returns when the members are known."""
        room = Room(self, name)
        await room.enter()
        return room

    async def rpc(self, method: str, data: dict[str, Any]) -> dict[str, Any]:
        """Sends any command. Waits a few seconds for a connection."""
        return (await self.client.rpc(method, data)).data or {}

    def notify(self, what: str, about: Any = None) -> None:
        self._listener(what, about)

    # The feed.

    def on_feed(self, message: User) -> None:
        """Ignores unknown kinds, which a later server may send."""
        kind = message.get("type")
        if kind == "snapshot":
            self._apply_part([], message)
        elif kind == "changes" and self._parts is not None:
            self._apply_part(self._parts, message)
        elif kind == "changes":
            self._apply_changes(message["users"], message.get("removed", []))
        elif kind == "typing":
            typist = (message["from"], message.get("room"))
            (self.typists.add if message["on"] else self.typists.discard)(typist)
            self.notify("typing", message)

    def _is_self(self, user: User) -> bool:
        return bool(user.get("self")) or user["id"] == self._self_id

    def _apply_part(self, before: list[User], message: User) -> None:
        """Nothing is replaced before the last part of a snapshot has arrived."""
        users = before + message["users"]
        self._parts = users if message.get("more") else None
        if self._parts is None:
            self._apply_snapshot(users)

    def _apply_snapshot(self, users: list[User]) -> None:
        """The state of a new connection: replaces all friends, whatever their versions."""
        self.friends = {user["id"]: user for user in users if not self._is_self(user)}
        for user in filter(self._is_self, users):
            self._self_id, self.me = user["id"], user
            self.notify("me", user)
        self.notify("snapshot", self.friends)

    def _apply_changes(self, users: list[User], removed: list[str]) -> None:
        for user in users:
            if self._is_self(user):
                if is_newer(self.me, user):
                    self.me = user
                    self.notify("me", user)
                continue
            is_tracked = user["id"] in self._wanted
            # Neither friend nor tracked: a new friend.
            if user["id"] in self.friends or not is_tracked:
                self._apply(self.friends, user)
            if is_tracked and user["id"] not in self._leaving:
                self._apply(self.tracked, user)
        for user_id in removed:
            self.friends.pop(user_id, None)
            self.tracked.pop(user_id, None)
            self.notify("removed", user_id)

    def _apply(self, users: dict[str, User], user: User) -> None:
        if is_newer(users.get(user["id"]), user):
            users[user["id"]] = user
            self.notify("changed", user)

    # Connections.

    def on_connected(self) -> None:
        self.tries = 0
        self.notify("connected")
        again = self._track_again(list(self._wanted), self._connections)
        for task in (self._send_app_state(), self._send_status(), again):
            self._spawn(task)

    def on_failed(self, error: Exception) -> None:
        """Counts a failed attempt."""
        if self.client.state is not ClientState.CONNECTING:
            return
        self.tries += 1
        if self.tries == TRIES_UNTIL_STUCK:
            self.notify("stuck", {"tries": self.tries, "reason": str(error) or type(error).__name__})

    def on_lost(self, kind: str, code: int, reason: str) -> None:
        """Drops the state of the connection."""
        self.tries = 0
        # The next connection sends the connect data.
        self._sent_app_state = self._connect_data["app_state"]
        self.typists.clear()
        self._connections += 1
        self._parts = None
        self._forget(list(self._leaving))
        if kind == "disconnected" and self._pending_status is not None:
            self._settle(self._pending_status, ConnectionError(f"disconnected: {reason}"))
        self.notify(kind, {"code": code, "reason": reason})

    def _spawn(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except (CentrifugeError, ConnectionError, TimeoutError) as error:
                # Lost again: the next connection sends it.
                print(f"rollcall: {error}", file=sys.stderr)

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _request_status(self, method: str, data: dict[str, Any]) -> None:
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        before, self._pending_status = self._pending_status, (method, data, outcome)
        if before is not None:
            outcome.add_done_callback(lambda _: _share(outcome, before[2]))
        await self._send_status()
        await outcome

    async def _send_status(self) -> None:
        request = self._pending_status
        if request is None or self.client.state is not ClientState.CONNECTED:
            return
        try:
            await self.rpc(request[0], request[1])
            self._settle(request, None)
        except ReplyError as error:
            if error.temporary:
                await asyncio.sleep(RETRY_S)
                self._spawn(self._send_status())
            else:
                self._settle(request, error)
        except CentrifugeError:
            pass  # Connection lost: the next one sends it.

    def _settle(self, request: Any, error: Exception | None) -> None:
        if self._pending_status is request:
            self._pending_status = None
        if not request[2].done():
            request[2].set_exception(error) if error is not None else request[2].set_result(None)

    async def _send_app_state(self) -> None:
        state = self._connect_data["app_state"]
        if self.client.state is ClientState.CONNECTED and state != self._sent_app_state:
            self._sent_app_state = state
            await self.rpc("app.state", {"state": state})

    async def _track(self, ids: list[str]) -> None:
        for part in _chunks(ids):
            seen = {user["id"]: user for user in (await self.rpc("track", {"users": part})).get("users", [])}
            for user_id in part:
                if user_id in seen and user_id in self._wanted and user_id not in self._leaving:
                    self._apply(self.tracked, seen[user_id])
                else:
                    self.tracked.pop(user_id, None)

    async def _track_again(self, ids: list[str], connection: int) -> None:
        """Tracks the users of the last connection again, in groups. Groups with a temporary error are hidden until they
        succeed, because their state is stale. Refused groups are removed."""
        while ids and connection == self._connections:
            later: list[str] = []
            for part in _chunks(ids):
                wanted = [user for user in part if user in self._wanted]
                try:
                    await self._track(wanted)
                except CentrifugeError as error:
                    if connection != self._connections:
                        return
                    for user in wanted:
                        self.tracked.pop(user, None)
                    if is_refusal(error):
                        self._wanted.difference_update(wanted)
                    else:
                        later += wanted
            if later:
                await asyncio.sleep(RETRY_S)
            ids = later


class Room:
    """A room with its members by connection."""

    def __init__(self, rollcall: Rollcall, name: str) -> None:
        self.name = name
        self.members: dict[str, ClientInfo] = {}
        self._rollcall = rollcall
        self._is_known = asyncio.Event()
        self._entries = 0
        self._subscription = rollcall.client.new_subscription(f"room:{name}", events=_RoomEvents(self), join_leave=True)

    async def enter(self) -> None:
        """Returns when the members are known."""
        await self._subscription.subscribe()
        await self._subscription.ready()
        await self._is_known.wait()

    async def fetch(self) -> None:
        """Fetches the members on each entry. Failures are retried while the room is entered."""
        self._entries += 1
        entry = self._entries
        while entry == self._entries and self._subscription.state is SubscriptionState.SUBSCRIBED:
            try:
                members = (await self._subscription.presence()).clients
            except (CentrifugeError, ConnectionError, TimeoutError) as error:
                print(f"rollcall: {error}", file=sys.stderr)
                await asyncio.sleep(RETRY_S)
                continue
            if entry == self._entries:
                self.members = members
                self._is_known.set()
            return

    async def leave(self) -> None:
        await self._subscription.unsubscribe()
        self._rollcall.client.remove_subscription(self._subscription)
        self.members = {}

    def on_join(self, info: ClientInfo) -> None:
        self.members[info.client] = info
        self._rollcall.notify("joined", {"room": self.name, "user": info.user, "client": info.client})

    def on_leave(self, info: ClientInfo) -> None:
        self.members.pop(info.client, None)
        self._rollcall.notify("left", {"room": self.name, "user": info.user, "client": info.client})

    def on_entered(self) -> None:
        self._rollcall._spawn(self.fetch())


class _Events(ClientEventHandler):
    def __init__(self, rollcall: Rollcall) -> None:
        self._rollcall = rollcall

    async def on_connected(self, ctx: Any) -> None:
        self._rollcall.on_connected()

    async def on_connecting(self, ctx: Any) -> None:
        self._rollcall.on_lost("connecting", ctx.code, ctx.reason)

    async def on_disconnected(self, ctx: Any) -> None:
        self._rollcall.on_lost("disconnected", ctx.code, ctx.reason)

    async def on_error(self, ctx: Any) -> None:
        self._rollcall.on_failed(ctx.error)

    async def on_publication(self, ctx: Any) -> None:
        if ctx.channel.startswith("feed:#"):
            self._rollcall.on_feed(ctx.pub.data)


class _RoomEvents(SubscriptionEventHandler):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def on_subscribed(self, ctx: Any) -> None:
        self._room.on_entered()

    async def on_join(self, ctx: Any) -> None:
        self._room.on_join(ctx.info)

    async def on_leave(self, ctx: Any) -> None:
        self._room.on_leave(ctx.info)


def _share(outcome: asyncio.Future[None], replaced: asyncio.Future[None]) -> None:
    """A replaced request shares the outcome of its replacement."""
    if replaced.done():
        return
    if outcome.cancelled():
        replaced.cancel()
    elif (error := outcome.exception()) is not None:
        replaced.set_exception(error)
    else:
        replaced.set_result(None)


def _chunks(ids: list[str]) -> Iterable[list[str]]:
    return (ids[at : at + TRACKED_PER_COMMAND] for at in range(0, len(ids), TRACKED_PER_COMMAND))


async def _watch(url: str, token_command: str) -> None:
    async def get_token() -> str:
        process = await asyncio.create_subprocess_shell(token_command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        return output.decode().strip()

    ended = asyncio.Event()

    def show(what: str, about: Any) -> None:
        if what == "snapshot":
            for friend in about.values():
                print(f"{friend['id']}: {friend['status']}")
        elif what in ("changed", "me"):
            print(f"{about['id']}: {about['status']} {about.get('text') or ''}".rstrip())
        elif what == "stuck":
            print(f"no connection after {about['tries']} attempts, retrying: {about['reason']}")
        elif what == "disconnected":
            print(f"disconnected: {about['reason']}")
            ended.set()
        else:
            print(what, about or "")
        sys.stdout.flush()

    # On SIGTERM the connection is closed first.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    rollcall = Rollcall(url, get_token, listener=show)
    await rollcall.connect()
    try:
        await ended.wait()
    finally:
        await rollcall.close()


def main() -> None:
    """Prints changes of friends until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Prints changes of friends.")
    parser.add_argument("url", help="such as ws://127.0.0.1:8080/connection/websocket")
    parser.add_argument("--token-command", required=True, help="a command that prints a token of the user")
    arguments = parser.parse_args()
    try:
        asyncio.run(_watch(arguments.url, arguments.token_command))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
