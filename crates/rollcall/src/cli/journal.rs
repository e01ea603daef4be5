//! `rollcall journal …`, `rollcall dlq …` and `rollcall failed …`

use clap::{Args, Subcommand, ValueEnum};
use journal::EntryId;

/// `rollcall journal …`
#[derive(Debug, Subcommand)]
pub enum JournalCommand {
    /// Show how long the journal is, how far each view is behind, and how fast both move
    #[command(
        after_help = "Measures for a second. A view that is behind and does not move is paused or waits for its \
                            store: see the server's log."
    )]
    Status,
    /// Stop a view from taking entries; they wait in the journal. Returns once no process applies another entry
    #[command(after_help = "Example:\n  rollcall journal pause activity")]
    Pause {
        /// ledger, activity or mirror
        #[arg(value_name = "VIEW")]
        view: ViewName,
    },
    /// Let a view take entries that were skipped because they are older than this installation
    #[command(
        after_help = "Entries that were in the journal before the database was made are skipped, and kept for a day. \
                            Each of them is applied once, however often this is repeated."
    )]
    Rewind {
        /// ledger or activity
        #[arg(value_name = "VIEW")]
        view: ViewName,
        /// From the oldest entry that the journal has
        #[arg(long, required = true)]
        from_start: bool,
    },
    /// Let a view go on
    Resume {
        /// ledger, activity or mirror
        #[arg(value_name = "VIEW")]
        view: ViewName,
    },
    /// List risk events, which look like cheating, newest first
    Risks {
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
    },
}

/// A view that can be paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ViewName {
    /// The accounts.
    Ledger,
    /// The lists of who seeds and who leeches.
    Activity,
    /// The tracker's layout in Redis.
    Mirror,
}

/// `rollcall dlq …` and `rollcall failed …`
#[derive(Debug, Subcommand)]
pub enum DeadLetterCommand {
    /// List them, oldest first
    List {
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
        /// Begin behind this one
        #[arg(long, value_name = "ENTRY")]
        after: Option<EntryId>,
    },
    /// Show one with all its fields
    Show {
        /// The entry's id, such as 1794742234000-0
        #[arg(value_name = "ENTRY")]
        id: EntryId,
    },
    /// Try them again now, from the first try on
    Replay(DeadLetterSelection),
    /// Delete them for good
    Drop(DeadLetterSelection),
}

/// Which letters are meant.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DeadLetterSelection {
    /// The entries' ids
    #[arg(value_name = "ENTRY")]
    pub ids: Vec<EntryId>,
    /// All of them
    #[arg(long)]
    pub all: bool,
}
