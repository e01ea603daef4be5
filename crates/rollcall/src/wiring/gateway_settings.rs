//! Settings of presence and the gateway, made from the configuration.

use std::time::Duration;

use domain::Seconds;
use gateway::settings::{
    ConnectionSettings, GatewaySettings, Secret, TokenSettings, UserLimits, WebhookSettings,
};
use presence::Policy;

use super::tracker_settings::seconds;
use crate::config::{Config, WebOrigin};

/// Activity is stored at most this often, so that "last seen" is accurate after a crash.
const STORE_INTERVAL: Seconds = Seconds(1);

/// Share of the connections that is probed each minute, to estimate how many only seem to be alive (P14).
const SAMPLE_ONE_IN: u32 = 100;
const WEBHOOK_RETRY: Duration = Duration::from_secs(24 * 60 * 60);

impl Config {
    pub fn presence_policy(&self) -> Policy {
        let presence = &self.presence;
        Policy {
            heartbeat: Seconds(presence.heartbeat_s),
            ping: Seconds(presence.ping_s),
            // P7: 5 s with heartbeats of 30 s.
            probe: Seconds((presence.heartbeat_s / 6).max(1)),
            background_away: Seconds(presence.background_away_s),
            background_gone: Seconds(presence.background_gone_s),
            pending: Seconds(presence.pending_s),
            flap_grace: Seconds(presence.flap_grace_s),
            flap_grace_max: Seconds(presence.flap_grace_s.saturating_mul(30)),
            store_interval: STORE_INTERVAL,
            ..Policy::default()
        }
    }

    /// `stored_secret` is the one in the data folder, for when none is configured.
    pub fn gateway_settings(&self, stored_secret: Option<String>) -> GatewaySettings {
        let gateway = &self.gateway;
        let hmac_secret = gateway.token_hmac_secret.reveal().map(str::to_owned).or(stored_secret);
        let webhook = gateway.webhook_url.as_str().map(|url| WebhookSettings {
            url: url.to_owned(),
            ca_file: gateway.webhook_ca_file.clone(),
            secret: Secret::new(gateway.webhook_secret.reveal().unwrap_or_default()),
            give_up: WEBHOOK_RETRY,
        });
        GatewaySettings {
            tokens: TokenSettings {
                hmac_secret: hmac_secret.map(Secret::new),
                public_key_file: gateway.token_public_key_file.clone(),
                jwks_file: gateway.token_jwks_file.clone(),
                audience: gateway.token_audience.as_str().map(str::to_owned),
                issuer: gateway.token_issuer.as_str().map(str::to_owned),
                allow_without_expiry: gateway.allow_tokens_without_expiry,
            },
            connections: self.connection_settings(),
            limits: self.user_limits(),
            webhook,
        }
    }

    fn connection_settings(&self) -> ConnectionSettings {
        let gateway = &self.gateway;
        ConnectionSettings {
            allowed_origins: gateway
                .allowed_origins
                .iter()
                .map(WebOrigin::as_str)
                .map(str::to_owned)
                .collect(),
            connections_max: gateway.connections_max as usize,
            connections_per_address_max: gateway.connections_per_address_max,
            connect_timeout: seconds(gateway.connect_timeout_s),
            commands_per_s: gateway.commands_per_s,
            ping: seconds(self.presence.ping_s),
            batch: Duration::from_millis(self.presence.batch_ms.into()),
            ..ConnectionSettings::default()
        }
    }

    fn user_limits(&self) -> UserLimits {
        let (presence, gateway) = (&self.presence, &self.gateway);
        UserLimits {
            room_access: gateway.room_access,
            history_days: presence.history_days,
            sample_one_in: SAMPLE_ONE_IN,
            ..UserLimits::default()
        }
    }
}
