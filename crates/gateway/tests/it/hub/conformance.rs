//! One suite for the presence port: the same scenes with one gateway, and with three that share a Redis or a Redis
//! Cluster. Watchers see the same, whichever gateways they and the watched users are connected to.
//!
//! Each scenario has its own users. Places are gateways: with one gateway all places are the same.

mod failures;
mod fixture;
mod repair;
mod scenarios;

use fixture::{Gateways, Kind};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_gateway() {
    let gateways = Gateways::new(Kind::Embedded).await;
    scenarios::play_all(&gateways).await;
    gateways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_three_gateways_on_one_redis() {
    let mut gateways = Gateways::new(Kind::Single).await;
    scenarios::play_all(&gateways).await;
    failures::users_of_a_dead_gateway_are_pending_and_then_offline(&mut gateways).await;
    failures::users_of_a_gateway_that_left_are_pending_unless_they_reconnected(&mut gateways).await;
    gateways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p16_with_three_gateways_on_a_cluster() {
    let mut gateways = Gateways::new(Kind::Cluster).await;
    scenarios::play_all(&gateways).await;
    failures::users_of_a_dead_gateway_are_pending_and_then_offline(&mut gateways).await;
    failures::users_of_a_gateway_that_left_are_pending_unless_they_reconnected(&mut gateways).await;
    gateways.end().await;
}
