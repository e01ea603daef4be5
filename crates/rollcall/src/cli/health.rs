//! The help of `rollcall doctor` and `rollcall ping`, which have no arguments of their own.

pub const DOCTOR_HELP: &str = "\
Checks the settings, the data folder, Redis, the database, the tables of an existing site, file limits, ports,
certificates, the clock and the journal.
Changes nothing, and can be used while the server runs. Run it as the user of the server, with its --config and --data.
Exit code 0 without problems (warnings do not count), 1 otherwise.

Examples:
  rollcall doctor
  rollcall doctor --config /etc/rollcall/rollcall.toml --data /var/lib/rollcall
  rollcall doctor --json";

pub const PING_HELP: &str = "\
Requests /healthz from the site, or connects to an announce listener, at the configured addresses of this machine.
Exit code 0 if the server responds, 1 if not. For health checks; rollcall doctor finds the cause.";
