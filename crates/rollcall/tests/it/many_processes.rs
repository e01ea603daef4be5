//! More than one process: one that takes another's place, several that serve the same swarms, and a Redis Cluster whose
//! masters die.

mod busy_clients;
mod failover;
mod gateways;
mod nodes;
mod starts;
mod take_over;
mod three_nodes;
mod warm_start;
