//! Any program may write and read the journal (J3): entries come from `redis-cli`, with fourteen fields, out of order
//! and with malformed ones among them; and a foreign consumer group reads what our tracker wrote.

mod dead_letters;
mod foreign_reader;
mod foreign_writer;
mod operator;
mod script;
