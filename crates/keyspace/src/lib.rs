//! Redis: connections, every key name, Lua scripts.
