//! The commands, one file each, all in the same steps: open, apply, record what was changed, print.

pub mod accounts;
pub mod audit;
pub mod backup;
pub mod client;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod friend;
pub mod journal;
pub mod key;
pub mod letters;
pub mod multiplier;
mod openapi;
pub mod passkey;
pub mod ping;
pub mod port;
mod recorded;
pub mod sandbox;
pub mod serve;
mod source;
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

use crate::backends;
use crate::cli::{Cli, Command, ConfigCommand, GlobalArgs};
use crate::config::{Config, Sources};
use crate::output::Output;
use crate::recorded_settings;

/// Lists are fetched in pages of so many rows.
const PAGE_ROWS: u32 = 1000;

/// What every command works with.
#[derive(Debug)]
pub struct Desk {
    /// The settings in force.
    pub config: Config,
    /// The data folder.
    pub data: PathBuf,
    /// Where results go.
    pub output: Output,
}

impl Desk {
    fn set_up(global: GlobalArgs, command: &Command) -> anyhow::Result<Self> {
        let data = global.data_folder();
        let sources = Sources::new(global.config, std::env::vars_os(), global.set);
        let config = match command {
            // These say what the settings are to be.
            Command::Serve { .. } | Command::Config(_) => sources.load()?,
            _ => recorded_settings::load(sources, &data)?,
        };
        Ok(Desk { config, data, output: Output::new(global.json) })
    }

    /// Opens the database; makes it if it is not there.
    pub async fn open_store(&self) -> anyhow::Result<Store> {
        let store = Store::open(&self.config.database_url(&self.data)).await?;
        if store.is_new() {
            // Most likely the command runs in another folder than the server.
            eprintln!("note: there was no database at {}; made an empty one", store.shown());
        }
        Ok(store)
    }

    /// Opens the journal.
    pub async fn open_journal(&self) -> anyhow::Result<Arc<dyn Journal>> {
        Ok(backends::open_journal(&self.config, &self.data).await?.store)
    }
}

/// Runs the command that was asked for.
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
    let desk = Desk::set_up(cli.global, &cli.command)?;
    match cli.command {
        Command::Serve { roles, take_over } => {
            serve::run(desk, &roles.unwrap_or_default(), take_over).await?;
        }
        Command::User(command) => user::run(&desk, command).await?,
        Command::Passkey(command) => return passkey::run(&desk, command).await,
        Command::Torrent(command) => torrent::run(&desk, command).await?,
        Command::Client(command) => client::run(&desk, command).await?,
        Command::Port(command) => port::run(&desk, command).await?,
        Command::Friend(command) => friend::run(&desk, command).await?,
        Command::Key(command) => key::run(&desk, command).await?,
        Command::Token(args) => token::run(&desk, args).await?,
        Command::Multiplier(command) => multiplier::run(&desk, command).await?,
        Command::Journal(command) => journal::run(&desk, command).await?,
        Command::Dlq(command) => letters::run(&desk, Lane::Dead, command).await?,
        Command::Failed(command) => letters::run(&desk, Lane::Failed, command).await?,
        Command::Audit(command) => return audit::run(&desk, command),
        Command::Config(_) => config::check(&desk)?,
        Command::Ping => return ping::run(&desk),
        Command::Backup(args) => backup::backup(&desk, &args.file).await?,
        Command::Restore(args) => backup::restore(&desk, &args.file).await?,
        Command::Migrate(args) => backup::migrate(&desk, &args.to).await?,
        Command::Sandbox(args) => sandbox::run(&desk, args).await?,
        Command::Openapi | Command::Doctor | Command::Demo(_) => {
            unreachable!("these were run above, since they work without the operator's settings, too")
        }
    }
    Ok(ExitCode::SUCCESS)
}
