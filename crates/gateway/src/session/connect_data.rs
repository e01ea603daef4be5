//! `connect.data`: the device's description of itself.

use std::borrow::Cow;

use presence::{AppState, Declared, DeviceId, Hello, Platform};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Unknown fields are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ConnectData<'a> {
    #[serde(borrow)]
    device: Option<Cow<'a, str>>,
    #[serde(borrow)]
    platform: Option<Cow<'a, str>>,
    #[serde(borrow)]
    app_state: Option<Cow<'a, str>>,
    #[serde(borrow)]
    state: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
}

/// Missing fields get defaults. The error is the text for the client.
pub(super) fn read(data: Option<&RawValue>) -> Result<Hello, &'static str> {
    let written = match data.map(RawValue::get) {
        None => ConnectData::default(),
        Some(text) if !text.starts_with('{') => return Err("data is not an object"),
        Some(text) => serde_json::from_str(text).map_err(|_| "data has a value of the wrong kind")?,
    };
    let device = match &written.device {
        Some(device) => DeviceId::new(device).ok_or("device is 1 to 64 visible ASCII characters")?,
        None => random_device()?,
    };
    let app = written.app_state.or(written.state);
    Ok(Hello {
        device,
        platform: parse_name(&written.platform, Platform::from_name, "platform is phone, computer or web")?
            .unwrap_or_default(),
        app: parse_name(&app, AppState::from_name, "app_state is foreground, background or inactive")?
            .unwrap_or_default(),
        declared: parse_name(
            &written.status,
            Declared::from_name,
            "status is online, away, busy or invisible",
        )?,
    })
}

fn parse_name<T>(
    given: &Option<Cow<'_, str>>,
    from_name: fn(&str) -> Option<T>,
    wrong: &'static str,
) -> Result<Option<T>, &'static str> {
    given.as_deref().map(|name| from_name(name).ok_or(wrong)).transpose()
}

/// A device without an id gets an unguessable one: devices are signed out by id.
fn random_device() -> Result<DeviceId, &'static str> {
    let random = getrandom::u64().map_err(|_| "no name can be made up for the device: give one")?;
    DeviceId::new(&format!("unnamed-{random:016x}")).ok_or("no name can be made up for the device: give one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(text: &str) -> Result<Hello, &'static str> {
        read(Some(serde_json::from_str(text).unwrap()))
    }

    #[test]
    fn p2_connect_data_describes_the_device_and_has_defaults() {
        let full =
            hello(r#"{"device":"d1","platform":"phone","app_state":"background","status":"busy","more":1}"#);
        let expected = Hello {
            device: DeviceId::new("d1").unwrap(),
            platform: Platform::Phone,
            app: AppState::Background,
            declared: Some(Declared::Busy),
        };
        assert_eq!(full.unwrap(), expected);
        assert_eq!(hello(r#"{"state":"inactive"}"#).unwrap().app, AppState::Inactive);
        let (one, other) = (read(None).unwrap(), hello("{}").unwrap());
        assert_eq!((one.platform, one.app, one.declared), (Platform::Web, AppState::Foreground, None));
        assert_ne!(one.device, other.device);
    }

    #[test]
    fn invalid_arguments_are_refused() {
        let wrong = [
            "[]",
            "7",
            "\"d\"",
            r#"{"device":""}"#,
            r#"{"device":7}"#,
            r#"{"device":"a b"}"#,
            r#"{"platform":"fridge"}"#,
            r#"{"app_state":"asleep"}"#,
            r#"{"status":"offline"}"#,
            r#"{"status":"pending"}"#,
        ];
        for text in wrong {
            assert!(hello(text).is_err(), "{text}");
        }
        assert!(hello(&format!(r#"{{"device":"{}"}}"#, "x".repeat(65))).is_err());
    }
}
