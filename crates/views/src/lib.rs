//! Views of the journal: what follows from the entries and can always be made again from them.
//!
//! # Layout
//!
//! - [`activity`]: who seeds, who leeches
//! - [`mirror`]: the tracker's Redis layout
//! - [`error`]: what can go wrong, and whether waiting helps

pub mod activity;
pub mod error;
pub mod mirror;

pub use activity::{
    ActiveTorrent, Activity, ActivityCounters, ActivitySettings, Counts, Cursor, Listing, Page, Rebuild,
    Swept,
};
pub use error::ViewsError;
pub use mirror::{Indexes, Mirror, MirrorCounters, MirrorParts, MirrorSettings};
