//! One suite for the presence port: the same scenes with one gateway, and with three that share a Redis or a Redis
//! Cluster. Whoever watches sees the same, wherever they and those they watch are connected.
//!
//! Each scene has people of its own. Places are gateways: with one gateway all places are the same.

mod mending;
mod scenes;
mod stage;
mod trouble;

use stage::{Kind, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_gateway() {
    let stage = Stage::new(Kind::Embedded).await;
    scenes::play_all(&stage).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_three_gateways_on_one_redis() {
    let mut stage = Stage::new(Kind::Single).await;
    scenes::play_all(&stage).await;
    trouble::who_was_at_a_gateway_that_died_is_pending_and_then_offline(&mut stage).await;
    trouble::who_was_at_a_gateway_that_left_is_pending_unless_they_came_elsewhere(&mut stage).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p16_with_three_gateways_on_a_cluster() {
    let mut stage = Stage::new(Kind::Cluster).await;
    scenes::play_all(&stage).await;
    trouble::who_was_at_a_gateway_that_died_is_pending_and_then_offline(&mut stage).await;
    trouble::who_was_at_a_gateway_that_left_is_pending_unless_they_came_elsewhere(&mut stage).await;
    stage.end().await;
}
