"""The PyPI package `centrifuge-python`, unchanged and with nothing in between."""

import asyncio

from centrifuge import Client, ClientEventHandler, SubscriptionEventHandler
from dialogue import serve, sign, tell


class Events(ClientEventHandler):
    async def on_connecting(self, ctx):
        tell("connecting", code=ctx.code, reason=ctx.reason)

    async def on_connected(self, ctx):
        tell("connected", client=ctx.client)

    async def on_disconnected(self, ctx):
        tell("disconnected", code=ctx.code, reason=ctx.reason)

    async def on_subscribed(self, ctx):
        tell("subscribed", channel=ctx.channel)

    async def on_publication(self, ctx):
        tell("publication", channel=ctx.channel, data=ctx.pub.data)


class RoomEvents(SubscriptionEventHandler):
    def __init__(self, channel):
        self.channel = channel

    async def on_join(self, ctx):
        tell("join", channel=self.channel, **info(ctx.info))

    async def on_leave(self, ctx):
        tell("leave", channel=self.channel, **info(ctx.info))

    async def on_unsubscribed(self, ctx):
        tell("unsubscribed", channel=self.channel, code=ctx.code, reason=ctx.reason)


def info(member):
    return {"client": member.client, "user": member.user}


class Agent:
    async def start(self, url, identity, first_ttl_s=None, data=None):
        async def get_token():
            tell("token")
            return sign(identity)

        self.client = Client(
            url,
            events=Events(),
            token="" if first_ttl_s is None else sign({**identity, "ttl_s": first_ttl_s}),
            get_token=get_token,
            data=data,
            min_reconnect_delay=0.1,
            max_reconnect_delay=0.5,
        )
        await self.client.connect()

    async def subscribe(self, channel):
        subscription = self.client.new_subscription(channel, events=RoomEvents(channel), join_leave=True)
        await subscription.subscribe()
        await subscription.ready()

    async def unsubscribe(self, channel):
        subscription = self.client.get_subscription(channel)
        await subscription.unsubscribe()
        self.client.remove_subscription(subscription)

    async def presence(self, channel):
        return [info(member) for member in (await self.client.presence(channel)).clients.values()]

    async def presence_stats(self, channel):
        stats = await self.client.presence_stats(channel)
        return {"clients": stats.num_clients, "users": stats.num_users}

    async def rpc(self, method, data):
        return (await self.client.rpc(method, data)).data

    async def publish(self, channel, data):
        await self.client.publish(channel, data)

    async def disconnect(self):
        await self.client.disconnect()


async def main():
    agent = Agent()
    names = ["start", "subscribe", "unsubscribe", "presence", "presence_stats", "rpc", "publish", "disconnect"]
    await serve({name: getattr(agent, name) for name in names})


asyncio.run(main())
