//! Devices: id, platform and app state (P2, P8).

use std::fmt;

/// Chosen by the client: 1 to 64 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(Box<str>);

impl DeviceId {
    pub const BYTES_MAX: usize = 64;

    /// None if the text is empty, too long, or has other characters than visible ASCII.
    pub fn new(text: &str) -> Option<DeviceId> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| DeviceId(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Phone or tablet.
    Phone,
    /// A desktop program.
    Computer,
    /// A browser page.
    #[default]
    Web,
}

impl Platform {
    pub const ALL: [Platform; 3] = [Platform::Phone, Platform::Computer, Platform::Web];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Phone => "phone",
            Platform::Computer => "computer",
            Platform::Web => "web",
        }
    }

    pub fn from_name(name: &str) -> Option<Platform> {
        Platform::ALL.into_iter().find(|platform| platform.name() == name)
    }
}

/// Whether the app is in use (P8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AppState {
    #[default]
    Foreground,
    /// Open, but not visible.
    Background,
    /// About to be suspended, or idle.
    Inactive,
}

impl AppState {
    pub const ALL: [AppState; 3] = [AppState::Foreground, AppState::Background, AppState::Inactive];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            AppState::Foreground => "foreground",
            AppState::Background => "background",
            AppState::Inactive => "inactive",
        }
    }

    pub fn from_name(name: &str) -> Option<AppState> {
        AppState::ALL.into_iter().find(|state| state.name() == name)
    }
}
