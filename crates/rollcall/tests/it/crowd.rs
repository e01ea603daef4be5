//! Thousands of users over real connections to the real program: they all reconnect at once, come and go, and are
//! present again after the program was killed (P4, P5, P11).
//!
//! `LOAD_SESSIONS` sets the number of users; `make load` runs 15,000 on a release build. The limit on open files
//! bounds the number.

mod churn;
mod restart;
mod site;
mod storm;
mod watcher;
