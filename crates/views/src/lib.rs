//! Views of the journal.
