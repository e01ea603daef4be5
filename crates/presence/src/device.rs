//! Devices: id, platform and app state (P2, P8).

use domain::named;
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

named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Platform {
        /// Phone or tablet.
        Phone = "phone",
        /// A desktop program.
        Computer = "computer",
        /// A browser page.
        #[default]
        Web = "web",
    }
}

named! {
    /// Whether the app is in use (P8).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum AppState {
        #[default]
        Foreground = "foreground",
        /// Open, but not visible.
        Background = "background",
        /// About to be suspended, or idle.
        Inactive = "inactive",
    }
}
