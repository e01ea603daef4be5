//! Integration tests of `wire`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bencode;
mod differential_http;
mod differential_udp;
mod differential_websocket;
mod fuzz_http;
mod fuzz_metainfo;
mod fuzz_udp;
mod fuzz_websocket;
mod http_query;
mod http_reply;
mod metainfo;
mod plain_query;
mod udp;
mod websocket;
