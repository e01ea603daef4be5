// What we use of it: the constructor, which the Centrifuge SDK takes as it is.
declare module "ws" {
  const WebSocket: unknown;
  export default WebSocket;
}
