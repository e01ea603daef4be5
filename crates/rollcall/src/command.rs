//! The commands, one file each, in the same steps: open, apply, audit, print.

pub mod accounts;
pub mod audit;
mod audited;
pub mod backup;
pub mod client;
pub mod config;
pub mod dead_letters;
pub mod demo;
pub mod doctor;
pub mod friend;
mod input;
pub mod journal;
pub mod key;
pub mod multiplier;
mod openapi;
pub mod passkey;
pub mod ping;
pub mod port;
pub mod sandbox;
pub mod serve;
mod site;
mod sync;
pub mod token;
pub mod torrent;
pub mod user;
mod why;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ::journal::{Journal, Lane};
use access::Store;

use crate::cli::{Cli, Command, ConfigCommand, GlobalArgs};
use crate::config::{Config, Sources};
use crate::output::Output;
use crate::recorded_settings;
use crate::wiring::stores;

/// Rows per page of a list.
const PAGE_ROWS: u32 = 1000;

#[derive(Debug)]
pub struct CommandContext {
    pub config: Config,
    pub data: PathBuf,
    pub output: Output,
}

impl CommandContext {
    fn new(global: GlobalArgs, command: &Command) -> anyhow::Result<Self> {
        let data = global.data_folder();
        let sources = Sources::new(global.config, std::env::vars_os(), global.set);
        let config = match command {
            // These use the given settings, not the recorded ones.
            Command::Serve { .. } | Command::Config(_) => sources.load()?,
            _ => recorded_settings::load(sources, &data)?,
        };
        Ok(CommandContext { config, data, output: Output::new(global.json) })
    }

    /// Creates the database if it does not exist.
    pub async fn open_store(&self) -> anyhow::Result<Store> {
        let store = Store::open(&self.config.database_url(&self.data)).await?;
        if store.is_new() {
            // Probably the command runs in another folder than the server.
            eprintln!("note: there was no database at {}; created an empty one", store.shown());
        }
        Ok(store)
    }

    pub async fn open_journal(&self) -> anyhow::Result<Arc<dyn Journal>> {
        Ok(stores::open_journal(&self.config, &self.data).await?.store)
    }
}

pub async fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    if let Command::Config(ConfigCommand::Print) = cli.command {
        config::print(Output::new(cli.global.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Openapi = cli.command {
        openapi::run(Output::new(cli.global.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Doctor = cli.command {
        return doctor::run(cli.global).await;
    }
    if let Command::Demo(args) = cli.command {
        demo::run(cli.global, args).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let context = CommandContext::new(cli.global, &cli.command)?;
    match cli.command {
        Command::Serve { roles, take_over } => {
            serve::run(context, &roles.unwrap_or_default(), take_over).await?;
        }
        Command::User(command) => user::run(&context, command).await?,
        Command::Passkey(command) => return passkey::run(&context, command).await,
        Command::Torrent(command) => torrent::run(&context, command).await?,
        Command::Client(command) => client::run(&context, command).await?,
        Command::Port(command) => port::run(&context, command).await?,
        Command::Friend(command) => friend::run(&context, command).await?,
        Command::Key(command) => key::run(&context, command).await?,
        Command::Token(args) => token::run(&context, args).await?,
        Command::Multiplier(command) => multiplier::run(&context, command).await?,
        Command::Site(command) => return site::run(&context, command).await,
        Command::Journal(command) => journal::run(&context, command).await?,
        Command::Dlq(command) => dead_letters::run(&context, Lane::Dead, command).await?,
        Command::Failed(command) => dead_letters::run(&context, Lane::Failed, command).await?,
        Command::Audit(command) => return audit::run(&context, command),
        Command::Config(_) => config::check(&context)?,
        Command::Ping => return ping::run(&context),
        Command::Backup(args) => backup::backup(&context, &args.file).await?,
        Command::Restore(args) => backup::restore(&context, &args.file).await?,
        Command::Migrate(args) => backup::migrate(&context, &args.to).await?,
        Command::Sandbox(args) => sandbox::run(&context, args).await?,
        Command::Openapi | Command::Doctor | Command::Demo(_) => {
            unreachable!("handled above: these work without the operator's settings")
        }
    }
    Ok(ExitCode::SUCCESS)
}
