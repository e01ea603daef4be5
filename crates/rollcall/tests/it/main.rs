//! Integration tests of `rollcall`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod any_producer;
mod api;
mod chaos;
mod commands;
mod conservation;
mod contract;
mod crowd;
mod dashboard;
mod demo;
mod deployment;
mod doctor;
mod journal_faults;
mod many_gateways;
mod many_processes;
mod metrics_page;
mod mirror;
mod presence_clients;
mod publication;
mod real_clients;
mod redis_source;
mod sandbox;
mod serving;
mod site;
mod site_integration;
mod site_tables;
mod unknown_passkeys;
