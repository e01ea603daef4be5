//! Text in Redis: node entries and declarations. `keyspace/src/lua/presence.lua` documents the format.

use domain::{Seconds, UnixTime};
use presence::remote::{NodeDevice, NodeEntry};
use presence::{AppState, Declaration, Declared, DeviceId, Platform, Policy};

/// Versions above this, and the one after it, have more digits than the scripts read.
pub(crate) const VERSION_MAX: u64 = 999_999_999_999_998;

/// An entry as arguments of the script.
pub(crate) struct EntryText {
    /// The highest-ranked declared status, and whether any device is online.
    pub summary: String,
    pub declared: String,
    pub devices: String,
}

impl EntryText {
    /// Devices beyond [`Policy::SESSIONS_MAX`], which a user cannot have at one node, are left out.
    pub(crate) fn of(devices: &[NodeDevice]) -> EntryText {
        let devices = &devices[..devices.len().min(Policy::SESSIONS_MAX as usize)];
        let best = devices.iter().filter_map(|device| device.declared).max_by_key(|declared| rank(*declared));
        let online = devices.iter().any(|device| device.online);
        let words: Vec<String> = devices
            .iter()
            .map(|device| {
                let (platform, app) = (platform_letter(device.platform), app_letter(device.app));
                format!("{platform}{app}{}{}", u8::from(device.online), device.id)
            })
            .collect();
        EntryText {
            summary: format!("{}{}", declared_letter(best), u8::from(online)),
            declared: devices.iter().map(|device| declared_letter(device.declared)).collect(),
            devices: words.join(" "),
        }
    }
}

/// Returns the entry and its deadline in milliseconds of Redis's clock.
pub(crate) fn read_entry(text: &str) -> Option<(NodeEntry, u64)> {
    let mut words = text.split(' ');
    let _summary = words.next()?;
    let deadline_ms = words.next()?.parse().ok()?;
    let last_activity = UnixTime(words.next()?.parse().ok()?);
    let gone_in = Seconds(words.next()?.parse().ok()?);
    let mut declared = words.next()?.chars();
    let devices: Option<Vec<NodeDevice>> = words.map(|word| read_device(word, declared.next()?)).collect();
    let devices = devices.filter(|devices| !devices.is_empty() && declared.next().is_none())?;
    Some((NodeEntry { devices, last_activity, gone_in }, deadline_ms))
}

fn read_device(word: &str, declared: char) -> Option<NodeDevice> {
    let mut entries = word.chars();
    let platform = entries.next()?;
    let platform = Platform::ALL.into_iter().find(|known| platform_letter(*known) == platform)?;
    let app = entries.next()?;
    let app = AppState::ALL.into_iter().find(|known| app_letter(*known) == app)?;
    let online = match entries.next()? {
        '0' => false,
        '1' => true,
        _ => return None,
    };
    let declared = match declared {
        '-' => None,
        declared => Some(read_declared(declared)?),
    };
    Some(NodeDevice { id: DeviceId::new(entries.as_str())?, platform, app, online, declared })
}

/// The text of a declaration.
pub(crate) fn declaration_text(declaration: &Declaration) -> String {
    let Declaration { status, text, until } = declaration;
    let until = until.map_or(0, |until| until.0);
    let text = text.as_ref().map_or_else(|| "-".to_owned(), |text| format!("+{text}"));
    format!("{} {until} {text}", declared_letter(Some(*status)))
}

pub(crate) fn read_declaration(text: &str) -> Option<Declaration> {
    let mut words = text.splitn(3, ' ');
    let mut status = words.next()?.chars();
    let (status, None) = (read_declared(status.next()?)?, status.next()) else { return None };
    let until = Some(UnixTime(words.next()?.parse().ok()?)).filter(|until| until.0 > 0);
    let text = match words.next()? {
        "-" => None,
        text => Some(text.strip_prefix('+')?.into()),
    };
    Some(Declaration { status, text, until })
}

const fn platform_letter(platform: Platform) -> char {
    match platform {
        Platform::Phone => 'p',
        Platform::Computer => 'c',
        Platform::Web => 'w',
    }
}

const fn app_letter(app: AppState) -> char {
    match app {
        AppState::Foreground => 'f',
        AppState::Background => 'b',
        AppState::Inactive => 'i',
    }
}

const fn declared_letter(declared: Option<Declared>) -> char {
    match declared {
        None => '-',
        Some(Declared::Online) => 'o',
        Some(Declared::Away) => 'a',
        Some(Declared::Busy) => 'b',
        Some(Declared::Invisible) => 'i',
    }
}

fn read_declared(entry: char) -> Option<Declared> {
    Declared::ALL.into_iter().find(|declared| declared_letter(Some(*declared)) == entry)
}

/// As in `presence`: the highest-ranked declared status of all sessions counts.
const fn rank(declared: Declared) -> u8 {
    match declared {
        Declared::Invisible => 3,
        Declared::Busy => 2,
        Declared::Online => 1,
        Declared::Away => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_were_written() {
        let mut devices = Vec::new();
        for (number, platform) in Platform::ALL.into_iter().enumerate() {
            for (declared, app) in
                [None, Some(Declared::Busy), Some(Declared::Away)].into_iter().zip(AppState::ALL)
            {
                let id = DeviceId::new(&format!("%d{number}|:\"{{}}{}", devices.len())).unwrap();
                devices.push(NodeDevice { id, platform, app, online: number == 1, declared });
            }
        }
        let text = EntryText::of(&devices);
        assert_eq!(text.summary, "b1");
        let whole = format!("{} 1234 99 90 {} {}", text.summary, text.declared, text.devices);
        let part = NodeEntry { devices, last_activity: UnixTime(99), gone_in: Seconds(90) };
        assert_eq!(read_entry(&whole), Some((part, 1234)));
        let wrong = [
            "",
            "b1",
            "b1 1 2 3 -",
            "b1 1 2 3 - pf1",
            "b1 1 2 3 -- pf1a",
            "b1 1 2 3 - xf1a",
            "b1 -1 2 3 - pf1a",
        ];
        for text in wrong {
            assert_eq!(read_entry(text), None, "{text}");
        }
    }

    #[test]
    fn declarations_are_read_as_they_were_written() {
        for (text, until) in [(None, None), (Some("in ☕ \n -"), Some(UnixTime(7))), (Some(""), None)] {
            let declared = Declaration { status: Declared::Away, text: text.map(Into::into), until };
            assert_eq!(read_declaration(&declaration_text(&declared)), Some(declared));
        }
        for text in ["", "b", "b 0", "b 0 x", "x 0 -", "bb 0 -", "b -1 -"] {
            assert_eq!(read_declaration(text), None, "{text}");
        }
    }
}
