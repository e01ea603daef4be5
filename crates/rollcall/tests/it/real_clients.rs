//! Real clients transfer real files and find each other by this tracker only.
//!
//! Every test has its own server, users and clients. Seeder, leecher and the scraping user are three users, because a
//! user's own peers are not returned to it.

mod refusals;
mod scenario;
mod transfers;
