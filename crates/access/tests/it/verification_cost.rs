//! Reading a cached answer does not allocate, measured by the allocator.

use tikv_jemalloc_ctl::thread::allocatedp;

use crate::fixture::{NOW, passkey};
use crate::verification::harness::{Harness, Options};

/// Bytes that this thread has allocated so far.
fn allocated() -> u64 {
    allocatedp::read().unwrap().get()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w4_reading_a_cached_answer_does_not_allocate() {
    let harness = Harness::new(Options::default()).await;
    harness.whitelist.add(&[passkey(1)]).await.unwrap();
    let user = harness.admit(passkey(1)).await.unwrap();
    assert!(harness.admit(passkey(2)).await.is_err());
    let (listed, unlisted) = (passkey(1), passkey(2));
    let before = allocated();
    for _ in 0..10_000 {
        assert_eq!(harness.gate.admit_user(&listed, NOW), Ok(user));
        assert!(harness.gate.admit_user(&unlisted, NOW).is_err());
    }
    assert_eq!(allocated() - before, 0);
}
