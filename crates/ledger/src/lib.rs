//! Accounts in SQL.
