//! `rollcall journal …`, `rollcall dlq …` and `rollcall failed …`

use clap::{Args, Subcommand, ValueEnum};
use journal::EntryId;

/// `rollcall journal …`
#[derive(Debug, Subcommand)]
pub enum JournalCommand {
    /// Show the length of the journal, the lag of each view, and their rates
    #[command(
        after_help = "Measures for a second. A view that lags and applies nothing is paused or waits for its \
                            store: see the server's log."
    )]
    Status,
    /// Pause a view; entries wait in the journal. Returns once no process applies further entries
    #[command(after_help = "Example:\n  rollcall journal pause activity")]
    Pause {
        /// ledger, activity, mirror or sites
        #[arg(value_name = "VIEW")]
        view: ViewName,
    },
    /// Apply entries that a view skipped because they are older than this installation
    #[command(
        after_help = "Entries that were in the journal before the database was created are skipped, and kept for a day. \
                            Each is applied once, even if this is repeated."
    )]
    Rewind {
        /// ledger or activity; mirror and sites cannot be rewound
        #[arg(value_name = "VIEW")]
        view: ViewName,
        /// Start at the oldest entry of the journal
        #[arg(long, required = true)]
        from_start: bool,
    },
    /// Resume a paused view
    Resume {
        /// ledger, activity, mirror or sites
        #[arg(value_name = "VIEW")]
        view: ViewName,
    },
    /// List risk events (possible cheating), newest first
    Risks {
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ViewName {
    /// The accounts
    Ledger,
    /// The lists of what each user seeds and leeches
    Activity,
    /// The keys t:* in Redis
    Mirror,
    /// The tables of an existing site
    Sites,
}

/// `rollcall dlq …` and `rollcall failed …`
#[derive(Debug, Subcommand)]
pub enum DeadLetterCommand {
    /// List entries, oldest first
    List {
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
        /// Start after this entry
        #[arg(long, value_name = "ENTRY")]
        after: Option<EntryId>,
    },
    /// Show one entry with all its fields
    Show {
        /// The entry's id, such as 1794742234000-0
        #[arg(value_name = "ENTRY")]
        id: EntryId,
    },
    /// Retry now, with all retries again
    Replay(DeadLetterSelection),
    /// Delete permanently
    Drop(DeadLetterSelection),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DeadLetterSelection {
    /// Ids of entries
    #[arg(value_name = "ENTRY")]
    pub ids: Vec<EntryId>,
    /// All entries
    #[arg(long)]
    pub all: bool,
}
