//! Connections to SQLite, PostgreSQL and MariaDB.
