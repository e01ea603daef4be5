// The npm package `centrifuge`, unchanged and with nothing in between.
import { Centrifuge } from "centrifuge";
import { Centrifuge as ProtobufCentrifuge } from "centrifuge/build/protobuf";
import WebSocket from "ws";
import { serve, sign, tell } from "./dialogue.mjs";

let client;
/** Where its connections come from; none leaves it to the system. */
let localAddress;

class Placed extends WebSocket {
  constructor(url, protocols = []) {
    super(url, protocols, { localAddress });
  }
}

const info = ({ client, user }) => ({ client, user });

function start({ url, identity, first_ttl_s, data, local_address, protobuf }) {
  localAddress = local_address;
  client = new (protobuf ? ProtobufCentrifuge : Centrifuge)(url, {
    websocket: Placed,
    data,
    token: first_ttl_s === undefined ? "" : sign({ ...identity, ttl_s: first_ttl_s }),
    getToken: async () => {
      tell("token");
      return sign(identity);
    },
    minReconnectDelay: 100,
    maxReconnectDelay: 500,
  });
  client.on("connecting", ({ code, reason }) => tell("connecting", { code, reason }));
  client.on("connected", ({ client }) => tell("connected", { client }));
  client.on("disconnected", ({ code, reason }) => tell("disconnected", { code, reason }));
  client.on("subscribed", ({ channel }) => tell("subscribed", { channel }));
  client.on("publication", ({ channel, data }) => tell("publication", { channel, data }));
  client.connect();
}

async function subscribe({ channel }) {
  const subscription = client.getSubscription(channel) ?? client.newSubscription(channel, { joinLeave: true });
  subscription.on("join", (context) => tell("join", { channel, ...info(context.info) }));
  subscription.on("leave", (context) => tell("leave", { channel, ...info(context.info) }));
  subscription.on("unsubscribed", ({ code, reason }) => tell("unsubscribed", { channel, code, reason }));
  subscription.subscribe();
  await subscription.ready();
}

function unsubscribe({ channel }) {
  const subscription = client.getSubscription(channel);
  subscription.unsubscribe();
  client.removeSubscription(subscription);
}

async function presence({ channel }) {
  const { clients } = await client.presence(channel);
  return Object.values(clients).map(info);
}

async function presenceStats({ channel }) {
  const { numClients, numUsers } = await client.presenceStats(channel);
  return { clients: numClients, users: numUsers };
}

serve({
  start,
  subscribe,
  unsubscribe,
  presence,
  presence_stats: presenceStats,
  rpc: async ({ method, data }) => (await client.rpc(method, data)).data,
  publish: async ({ channel, data }) => void (await client.publish(channel, data)),
  disconnect: () => client.disconnect(),
});
