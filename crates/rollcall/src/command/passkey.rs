//! `rollcall passkey …`

use std::process::ExitCode;

use access::audit::Subject;
use domain::Passkey;
use serde_json::json;

use super::recorded::record;
use super::{Desk, user};
use crate::cli::PasskeyCommand;

/// Runs it. The exit code of `check` is its answer.
pub async fn run(desk: &Desk, command: PasskeyCommand) -> anyhow::Result<ExitCode> {
    let store = desk.open_store().await?;
    let exit_code = match command {
        PasskeyCommand::Rotate { user, passkey } => {
            let rotating = async {
                store.rotate_passkey(user, passkey).await?;
                user::find(&store, user).await
            };
            let record = record("passkey.rotate", Subject::user(Some(user)));
            user::show(desk, &desk.recorded(record, rotating, user::tell_of).await?)?;
            ExitCode::SUCCESS
        }
        PasskeyCommand::Check { passkey } => {
            let holder = store.user_by_passkey(&passkey).await?;
            check(desk, passkey, holder)?
        }
    };
    store.close().await;
    Ok(exit_code)
}

fn check(desk: &Desk, passkey: Passkey, holder: Option<access::User>) -> std::io::Result<ExitCode> {
    let (valid, reason, text) = match &holder {
        Some(user) if user.enabled => {
            (true, None, format!("passkey {} works: user {}", passkey.redacted(), user.id))
        }
        Some(user) => {
            let text = format!("passkey {} does not work: user {} is disabled", passkey.redacted(), user.id);
            (false, Some("disabled"), text)
        }
        None => {
            (false, Some("unknown"), format!("passkey {} does not work: nobody has it", passkey.redacted()))
        }
    };
    let user = holder.map(|user| user.id.get());
    desk.output.show(&json!({ "valid": valid, "user": user, "reason": reason }), &format!("{text}\n"))?;
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
