//! Conformance suite of the friend store; runs on SQLite, PostgreSQL and MariaDB.

mod change_feed;
mod fixture;
mod friend_lists;
mod friends;
mod presence_events;
mod privacy;
mod stored_presence;
