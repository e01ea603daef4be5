//! The gateway from its public interface.

mod hub;
mod outbox;
