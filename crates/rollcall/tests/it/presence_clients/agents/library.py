"""The example in clients/python, as a program uses it."""

import asyncio

import presence
from dialogue import serve, sign, tell

# Servers of tests are back at once.
presence.RECONNECT_S_MIN = 0.1
presence.RECONNECT_S_MAX = 0.5


class Agent:
    def __init__(self):
        self.rooms = {}

    def hear(self, what, about):
        if what in ("connected", "connecting", "stuck", "disconnected"):
            tell(what, **(about or {}))
        elif what == "snapshot":
            for user in about.values():
                tell("friend", user=user)
        elif what == "changed":
            tell("tracked" if about["id"] in self.rollcall.tracked else "friend", user=about)
        elif what == "removed":
            tell("unfriended", id=about)
        elif what == "me":
            tell("me", user=about)
        elif what == "typing":
            notes = self.rollcall.typists
            now = [{"from": who, "room": room} if room else {"from": who} for who, room in sorted(notes, key=str)]
            tell("typists", now=now)
        else:
            tell(what, room=about["room"], user=about["user"])

    async def start(self, url, identity, device=None, platform="computer"):
        async def get_token():
            return sign(identity)

        self.rollcall = presence.Rollcall(url, get_token, device=device, platform=platform, listener=self.hear)
        await self.rollcall.connect()

    async def enter(self, room):
        self.rooms[room] = await self.rollcall.room(room)

    async def leave(self, room):
        await self.rooms[room].leave()

    async def members(self, room):
        return sorted({member.user for member in self.rooms[room].members.values()})

    async def set_status(self, status, text=None, until=None):
        await self.rollcall.set_status(status, text, until)

    async def typing(self, on, to=None, room=None):
        await self.rollcall.typing(on, to=to, room=room)

    async def set_privacy(self, privacy):
        await self.rollcall.set_privacy(**privacy)


async def main():
    agent = Agent()
    own = ["start", "enter", "leave", "members", "set_status", "typing", "set_privacy"]
    commands = {name: getattr(agent, name) for name in own}
    theirs = {
        "clear_status": "clear_status",
        "app_state": "set_app_state",
        "track": "track",
        "untrack": "untrack",
        "devices": "devices",
        "sign_out": "sign_out",
        "privacy": "privacy",
        "close": "close",
        "open": "connect",
    }
    for name, method in theirs.items():
        commands[name] = lambda method=method, **details: getattr(agent.rollcall, method)(**details)
    await serve(commands)


asyncio.run(main())
