"""Who is here right now: Rollcall's presence for a Python program, over the published Centrifuge SDK.

An example to copy from, and a program to try a server with:

    python presence.py ws://127.0.0.1:8080/connection/websocket --token-command "rollcall token 7"

prints friends as they come, change and go. It keeps friends as a dictionary that is always up to date, says whether
somebody looks, and comes back by itself after a lost connection: one second, then twice as long each time, up to twenty,
with jitter (the SDK's), until the server says not to. After ten tries in vain the program is told ("stuck"), so that it can
tell its user; it goes on trying.

What it deliberately does not do: sign tokens (that is the site's own back end), keep messages, or ping: the server pings,
and the SDK answers.
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
#: What changed, and who: "connected", "connecting", "stuck", "disconnected", "snapshot", "changed", "removed", "me", "typing",
#: "joined", "left".
Listener = Callable[[str, Any], None]

RECONNECT_S_MIN = 1.0
RECONNECT_S_MAX = 20.0
#: Tries in vain after which the user should be told.
TRIES_UNTIL_STUCK = 10
#: How many users are tracked with one command: it has to fit the server's bound on messages.
TRACKED_AT_ONCE = 500
#: After how long something that the server refused for now is said again.
AGAIN_S = 1.0


def is_here(user: User | None) -> bool:
    """Whether somebody is here. `pending` counts: the server has just restarted, and they had no time to come back."""
    return user is not None and user["status"] != "offline"


def is_news(known: User | None, user: User) -> bool:
    """Whether `user` is to replace what is known: what is older is not, but version 0 is what the server sends of
    somebody who may no longer be seen."""
    return known is None or user["version"] == 0 or user["version"] >= known["version"]


def is_refusal(error: Exception) -> bool:
    """Whether the server has refused for good, as opposed to a lost connection or a server with too much to do."""
    return isinstance(error, ReplyError) and error.code > 100 and error.code != 111 and not error.temporary


class Rollcall:
    """One connection to a Rollcall server, for one person on one device."""

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
        #: Tries in vain since there was a connection, or since `connect`.
        self.tries = 0
        self._self_id: str | None = None
        self._wanted: set[str] = set()
        # Those of them who are no longer wanted, while the server may still tell of them.
        self._leaving: set[str] = set()
        # What has come so far of a snapshot of several messages.
        self._parts: list[User] | None = None
        # How many there were: what was begun on one of them is not gone on with on another.
        self._connections = 0
        self._listener = listener
        # The SDK keeps this very object, and sends what is in it at each connect.
        self._connect_data = {"device": self.device, "platform": platform, "app_state": "foreground"}
        self._told_app_state = "foreground"
        # What was declared and not confirmed: the method, its data, and who waits. What is confirmed the server keeps by
        # itself; saying it again at each reconnect would undo what another device has said since.
        self._wish: tuple[str, dict[str, Any], asyncio.Future[None]] | None = None
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
        """Connects, and stays connected until `close`, or until the server says not to come back."""
        await self.client.connect()

    @property
    def is_stuck(self) -> bool:
        """Ten tries to connect were in vain: worth telling the user. It goes on trying."""
        return self.tries >= TRIES_UNTIL_STUCK

    async def close(self) -> None:
        """Says goodbye: a close frame goes out first, so friends see at once that this device has gone."""
        await self.client.disconnect()

    async def set_status(self, status: str, text: str | None = None, until: int | None = None) -> None:
        """Declares a status for the person, on all devices, until it is cleared, replaced, or `until` (unix seconds)
        passes. Without a connection it is said as soon as there is one. Returns when the server has it."""
        details = {"text": text, "until": until}
        given = {name: value for name, value in details.items() if value is not None}
        await self._declare("status.set", {"status": status, **given})

    async def clear_status(self) -> None:
        """Takes back what was declared: the status follows from the devices again."""
        await self._declare("status.clear", {})

    async def set_app_state(self, state: str) -> None:
        """Says whether somebody looks: "foreground", "background" or "inactive"."""
        self._connect_data["app_state"] = state
        await self._tell_app_state()

    async def typing(self, on: bool, *, to: str | None = None, room: str | None = None) -> None:
        """Tells a person or a room that one is typing, or no longer."""
        await self.rpc("typing", {"to": to, "on": on} if room is None else {"room": room, "on": on})

    async def track(self, users: Iterable[str]) -> None:
        """Watches people who are not friends; those who may be seen appear in `tracked`. Kept over reconnects. What the
        server refuses, such as too many, is not kept: all of them are tracked, or none."""
        ids = [user for user in dict.fromkeys(users) if user not in self._wanted or user in self._leaving]
        self._wanted.update(ids)
        self._leaving.difference_update(ids)
        if self._is_connected():
            try:
                await self._track(ids)
            except CentrifugeError as error:
                # Without a connection the next one asks for them.
                if self._is_connected() or is_refusal(error):
                    await self._untrack_quietly(ids)
                    raise

    async def untrack(self, users: Iterable[str]) -> None:
        """Ends that."""
        ids = list(dict.fromkeys(users))
        # Until the server tells of them no more, what it says of them would be taken for news of new friends.
        self._leaving.update(self._wanted.intersection(ids))
        for user in ids:
            self.tracked.pop(user, None)
        for part in _chunks(ids):
            try:
                if self._is_connected():
                    await self.rpc("untrack", {"users": part})
            except CentrifugeError:
                # What a lost connection tracked, the next one does not.
                if self._is_connected():
                    raise
            self._forget(part)

    async def _untrack_quietly(self, ids: list[str]) -> None:
        try:
            await self.untrack(ids)
        except CentrifugeError:
            pass  # They are not shown, and the end of the connection ends it.

    def _forget(self, ids: Iterable[str]) -> None:
        """Forgets those of them who have not been wanted again since."""
        gone = self._leaving.intersection(ids)
        self._wanted -= gone
        self._leaving -= gone

    def _is_connected(self) -> bool:
        return self.client.state is ClientState.CONNECTED

    async def devices(self) -> list[dict[str, Any]]:
        """One's own devices."""
        return (await self.rpc("devices.list", {})).get("devices", [])

    async def sign_out(self, device: str) -> None:
        """Signs one of them out: its connections are closed, and it does not come back by itself."""
        await self.rpc("devices.sign_out", {"device": device})

    async def privacy(self) -> dict[str, Any]:
        """Who may see what of oneself."""
        return await self.rpc("privacy.get", {})

    async def set_privacy(self, **changes: Any) -> None:
        """Changes that, at once: `status`, `last_seen`, `never`. What is left out stays as it is."""
        await self.rpc("privacy.set", changes)

    async def room(self, name: str) -> Room:
        """Enters a room, and waits until everyone in it is known."""
        room = Room(self, name)
        await room.enter()
        return room

    async def rpc(self, method: str, data: dict[str, Any]) -> dict[str, Any]:
        """Any command of the server. Waits a few seconds for a connection where there is none."""
        return (await self.client.rpc(method, data)).data or {}

    def tell(self, what: str, about: Any = None) -> None:
        """Tells the program's listener."""
        self._listener(what, about)

    # What the feed says.

    def take_feed(self, message: User) -> None:
        """Takes a message of the personal feed. A kind that a later server may send is left alone."""
        kind = message.get("type")
        if kind == "snapshot":
            self._take_part([], message)
        elif kind == "changes" and self._parts is not None:
            self._take_part(self._parts, message)
        elif kind == "changes":
            self._take_changes(message["users"], message.get("removed", []))
        elif kind == "typing":
            typist = (message["from"], message.get("room"))
            (self.typists.add if message["on"] else self.typists.discard)(typist)
            self.tell("typing", message)

    def _is_self(self, user: User) -> bool:
        return bool(user.get("self")) or user["id"] == self._self_id

    def _take_part(self, before: list[User], message: User) -> None:
        """Replaces nobody before the last part of a long snapshot is there."""
        users = before + message["users"]
        self._parts = users if message.get("more") else None
        if self._parts is None:
            self._take_snapshot(users)

    def _take_snapshot(self, users: list[User]) -> None:
        """The truth of a new connection: it replaces all friends, whatever their versions."""
        self.friends = {user["id"]: user for user in users if not self._is_self(user)}
        for user in filter(self._is_self, users):
            self._self_id, self.me = user["id"], user
            self.tell("me", user)
        self.tell("snapshot", self.friends)

    def _take_changes(self, users: list[User], removed: list[str]) -> None:
        for user in users:
            if self._is_self(user):
                if is_news(self.me, user):
                    self.me = user
                    self.tell("me", user)
                continue
            is_tracked = user["id"] in self._wanted
            # Who is neither a friend nor tracked is a new friend.
            if user["id"] in self.friends or not is_tracked:
                self._take(self.friends, user)
            if is_tracked and user["id"] not in self._leaving:
                self._take(self.tracked, user)
        for user_id in removed:
            self.friends.pop(user_id, None)
            self.tracked.pop(user_id, None)
            self.tell("removed", user_id)

    def _take(self, people: dict[str, User], user: User) -> None:
        if is_news(people.get(user["id"]), user):
            people[user["id"]] = user
            self.tell("changed", user)

    # What a new connection is told.

    def on_connected(self) -> None:
        """Says all that the connection does not know yet."""
        self.tries = 0
        self.tell("connected")
        again = self._track_again(list(self._wanted), self._connections)
        for task in (self._tell_app_state(), self._tell_wish(), again):
            self._spawn(task)

    def on_failed(self, error: Exception) -> None:
        """Counts a try in vain, and tells the program once there were ten."""
        if self.client.state is not ClientState.CONNECTING:
            return
        self.tries += 1
        if self.tries == TRIES_UNTIL_STUCK:
            self.tell("stuck", {"tries": self.tries, "reason": str(error) or type(error).__name__})

    def on_lost(self, kind: str, code: int, reason: str) -> None:
        """Forgets what only a connection can tell the end of."""
        self.tries = 0
        # The next connection says what is in the connect data.
        self._told_app_state = self._connect_data["app_state"]
        self.typists.clear()
        self._connections += 1
        self._parts = None
        self._forget(list(self._leaving))
        if kind == "disconnected" and self._wish is not None:
            self._settle(self._wish, ConnectionError(f"disconnected: {reason}"))
        self.tell(kind, {"code": code, "reason": reason})

    def _spawn(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except (CentrifugeError, ConnectionError, TimeoutError) as error:
                # Lost again: the next connection says it.
                print(f"rollcall: {error}", file=sys.stderr)

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _declare(self, method: str, data: dict[str, Any]) -> None:
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        before, self._wish = self._wish, (method, data, outcome)
        if before is not None:
            outcome.add_done_callback(lambda _: _share(outcome, before[2]))
        await self._tell_wish()
        await outcome

    async def _tell_wish(self) -> None:
        wish = self._wish
        if wish is None or self.client.state is not ClientState.CONNECTED:
            return
        try:
            await self.rpc(wish[0], wish[1])
            self._settle(wish, None)
        except ReplyError as error:
            if error.temporary:
                await asyncio.sleep(AGAIN_S)
                self._spawn(self._tell_wish())
            else:
                self._settle(wish, error)
        except CentrifugeError:
            pass  # The connection broke: the next one says it.

    def _settle(self, wish: Any, error: Exception | None) -> None:
        if self._wish is wish:
            self._wish = None
        if not wish[2].done():
            wish[2].set_exception(error) if error is not None else wish[2].set_result(None)

    async def _tell_app_state(self) -> None:
        state = self._connect_data["app_state"]
        if self.client.state is ClientState.CONNECTED and state != self._told_app_state:
            self._told_app_state = state
            await self.rpc("app.state", {"state": state})

    async def _track(self, ids: list[str]) -> None:
        for part in _chunks(ids):
            seen = {user["id"]: user for user in (await self.rpc("track", {"users": part})).get("users", [])}
            for user_id in part:
                if user_id in seen and user_id in self._wanted and user_id not in self._leaving:
                    self._take(self.tracked, seen[user_id])
                else:
                    self.tracked.pop(user_id, None)

    async def _track_again(self, ids: list[str], connection: int) -> None:
        """Tracks on a new connection those who were tracked on the last one, some at a time. Who cannot be for now is not
        shown meanwhile: what is known of them grows old. Who is refused is forgotten, so that the rest is not refused
        with them."""
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
                await asyncio.sleep(AGAIN_S)
            ids = later


class Room:
    """A room: who is in it, by connection."""

    def __init__(self, rollcall: Rollcall, name: str) -> None:
        self.name = name
        self.members: dict[str, ClientInfo] = {}
        self._rollcall = rollcall
        self._is_known = asyncio.Event()
        self._entries = 0
        self._subscription = rollcall.client.new_subscription(f"room:{name}", events=_RoomEvents(self), join_leave=True)

    async def enter(self) -> None:
        """Enters, and waits until everyone in it is known."""
        await self._subscription.subscribe()
        await self._subscription.ready()
        await self._is_known.wait()

    async def fetch(self) -> None:
        """Fetches everyone: on entering, and on entering again after a lost connection. What fails is tried again for as
        long as the room is entered; a new connection fetches anew."""
        self._entries += 1
        entry = self._entries
        while entry == self._entries and self._subscription.state is SubscriptionState.SUBSCRIBED:
            try:
                members = (await self._subscription.presence()).clients
            except (CentrifugeError, ConnectionError, TimeoutError) as error:
                print(f"rollcall: {error}", file=sys.stderr)
                await asyncio.sleep(AGAIN_S)
                continue
            if entry == self._entries:
                self.members = members
                self._is_known.set()
            return

    async def leave(self) -> None:
        """Leaves."""
        await self._subscription.unsubscribe()
        self._rollcall.client.remove_subscription(self._subscription)
        self.members = {}

    def on_join(self, info: ClientInfo) -> None:
        """Somebody came."""
        self.members[info.client] = info
        self._rollcall.tell("joined", {"room": self.name, "user": info.user, "client": info.client})

    def on_leave(self, info: ClientInfo) -> None:
        """Somebody left."""
        self.members.pop(info.client, None)
        self._rollcall.tell("left", {"room": self.name, "user": info.user, "client": info.client})

    def on_entered(self) -> None:
        """It was entered, or entered again."""
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
            self._rollcall.take_feed(ctx.pub.data)


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
    """What was replaced shares the outcome of what replaces it, good or bad."""
    if replaced.done():
        return
    if outcome.cancelled():
        replaced.cancel()
    elif (error := outcome.exception()) is not None:
        replaced.set_exception(error)
    else:
        replaced.set_result(None)


def _chunks(ids: list[str]) -> Iterable[list[str]]:
    return (ids[at : at + TRACKED_AT_ONCE] for at in range(0, len(ids), TRACKED_AT_ONCE))


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
            print(f"no connection after {about['tries']} tries, still trying: {about['reason']}")
        elif what == "disconnected":
            print(f"disconnected: {about['reason']}")
            ended.set()
        else:
            print(what, about or "")
        sys.stdout.flush()

    # Whoever ends the program has it say goodbye first.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    rollcall = Rollcall(url, get_token, listener=show)
    await rollcall.connect()
    try:
        await ended.wait()
    finally:
        await rollcall.close()


def main() -> None:
    """Prints friends as they come, change and go, until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Prints friends as they come, change and go.")
    parser.add_argument("url", help="such as ws://127.0.0.1:8080/connection/websocket")
    parser.add_argument("--token-command", required=True, help="a command that prints a token for the person who looks")
    arguments = parser.parse_args()
    try:
        asyncio.run(_watch(arguments.url, arguments.token_command))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
