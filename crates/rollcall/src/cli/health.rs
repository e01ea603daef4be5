//! The help of `rollcall doctor` and `rollcall ping`, which take nothing but what every command takes.

/// Behind the help of `rollcall doctor`.
pub const DOCTOR_HELP: &str = "\
Looks at the settings, the data folder, Redis, the database, file limits, ports, certificates, the clock and the journal.
Changes nothing, and can be used while the server runs. Run it as the user of the server, with its --config and --data.
Exit code 0 if there is no problem (warnings may be), 1 if there is one.

Examples:
  rollcall doctor
  rollcall doctor --config /etc/rollcall/rollcall.toml --data /var/lib/rollcall
  rollcall doctor --json";

/// Behind the help of `rollcall ping`.
pub const PING_HELP: &str = "\
Asks the addresses that the settings name, on this machine: the site for /healthz, or an announce listener.
Exit code 0 if it is alive, 1 if not. For health checks; what is wrong says: rollcall doctor";
