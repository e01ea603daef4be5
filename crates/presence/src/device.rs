//! What a device says of itself (P2).

use std::fmt;

/// The name of a device, chosen by its client: 1 to 64 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(Box<str>);

impl DeviceId {
    /// The longest name.
    pub const BYTES_MAX: usize = 64;

    /// A name; none if the text is empty, too long, or has anything but visible ASCII in it.
    pub fn new(text: &str) -> Option<DeviceId> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| DeviceId(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of device it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Platform {
    /// A phone or tablet.
    Phone,
    /// A program on a computer.
    Computer,
    /// A page in a browser.
    #[default]
    Web,
}

impl Platform {
    /// Every kind.
    pub const ALL: [Platform; 3] = [Platform::Phone, Platform::Computer, Platform::Web];

    /// Its name, as the wire has it.
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Phone => "phone",
            Platform::Computer => "computer",
            Platform::Web => "web",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Platform> {
        Platform::ALL.into_iter().find(|platform| platform.name() == name)
    }
}

/// Whether somebody looks at the app (P8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AppState {
    /// In use.
    #[default]
    Foreground,
    /// Open, but not looked at.
    Background,
    /// About to sleep, or nobody there.
    Inactive,
}

impl AppState {
    /// Every state.
    pub const ALL: [AppState; 3] = [AppState::Foreground, AppState::Background, AppState::Inactive];

    /// Its name, as the wire has it.
    pub const fn name(self) -> &'static str {
        match self {
            AppState::Foreground => "foreground",
            AppState::Background => "background",
            AppState::Inactive => "inactive",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<AppState> {
        AppState::ALL.into_iter().find(|state| state.name() == name)
    }
}
