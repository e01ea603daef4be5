//! `rollcall site …`

use clap::Subcommand;

/// `rollcall site …`
#[derive(Debug, Subcommand)]
pub enum SiteCommand {
    /// List, print and check profiles: how the tables of a site are read and written
    #[command(subcommand, arg_required_else_help = true)]
    Profile(ProfileCommand),
}

/// `rollcall site profile …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A profile is a TOML file of SQL. To change one, print it, edit the copy, and set sites.profile to its path.

Examples:
  rollcall site profile list
  rollcall site profile print xbt > site.toml
  rollcall site profile check ./site.toml")]
pub enum ProfileCommand {
    /// List the built-in profiles
    List,
    /// Print a profile
    Print {
        /// A built-in profile, or the path of a file
        #[arg(value_name = "PROFILE")]
        profile: String,
    },
    /// Check a profile, and the tables of sites.database_url if it is set; nothing is changed
    #[command(after_help = "Exit code 0 without problems, 1 otherwise.")]
    Check {
        /// A built-in profile, or the path of a file; sites.profile if omitted
        #[arg(value_name = "PROFILE")]
        profile: Option<String>,
    },
}
