//! Friendships, privacy, and what was last known of each person, in SQL.
