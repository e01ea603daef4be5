//! `rollcall token USER`: a gateway token, as the site would issue it.

use admin::audit::Subject;
use anyhow::bail;
use domain::UnixTime;
use domain::clock::{Clock, SystemClock};
use domain::time::rfc3339;
use gateway::mint::{TokenClaims, mint};
use serde_json::json;

use super::CommandContext;
use super::audited::record;
use crate::cli::token::TokenArgs;
use crate::gateway_secret;

const ROOM_CHARS_MAX: usize = 64;

pub async fn run(context: &CommandContext, args: TokenArgs) -> anyhow::Result<()> {
    let channel = args.room.as_deref().map(channel_of).transpose()?;
    let secret = gateway_secret::for_command(&context.config, &context.data)?;
    let issued_at = SystemClock.now();
    let expires_at = UnixTime(issued_at.0.saturating_add(args.ttl));
    let claims = TokenClaims {
        user: args.user,
        issued_at,
        expires_at,
        audience: context.config.gateway.token_audience.as_str().unwrap_or_default(),
        issuer: context.config.gateway.token_issuer.as_str().unwrap_or_default(),
        channel: channel.as_deref(),
    };
    let record = record("token.mint", Subject::user(Some(args.user))).with("expires_at", expires_at.0);
    let record = match &channel {
        Some(channel) => record.with("channel", channel.as_str()),
        None => record,
    };
    let token = context.audited(record, async { mint(&secret, &claims) }, |record, _| record).await?;
    let json = json!({
        "token": token,
        "user": args.user.get(),
        "expires_at": expires_at.0,
        "expires": rfc3339(u64::from(expires_at.0) * 1000),
        "channel": channel,
    });
    Ok(context.output.show(&json, &format!("{token}\n"))?)
}

fn channel_of(room: &str) -> anyhow::Result<String> {
    let fits = (1..=ROOM_CHARS_MAX).contains(&room.chars().count());
    if !fits || room.chars().any(|c| c.is_control() || c.is_whitespace()) {
        bail!("a room name has 1 to {ROOM_CHARS_MAX} visible characters without spaces");
    }
    Ok(format!("room:{room}"))
}
