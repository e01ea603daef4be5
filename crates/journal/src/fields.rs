//! The fields of an entry: names and values, in order.

use std::fmt;
use std::io::Write as _;
use std::sync::OnceLock;

use domain::TrafficEvent;

use crate::event_fields::for_each_field;

/// Names and values in one buffer: one allocation per entry.
///
/// Values are bytes: other producers may write anything, and malformed entries must be kept as well.
///
/// The fields of an event of our trackers are written out only when they are asked for: views need the event.
#[derive(Clone)]
pub struct Fields {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Written(Vec<u8>),
    Event(Box<EventForm>),
}

#[derive(Clone)]
struct EventForm {
    event: TrafficEvent,
    written: OnceLock<Vec<u8>>,
}

impl EventForm {
    fn written(&self) -> &Vec<u8> {
        self.written.get_or_init(|| {
            let mut written = Vec::with_capacity(ENTRY_BYTES);
            for_each_field(&self.event, |name, value| {
                push_part(&mut written, name.as_bytes());
                push_part(&mut written, value);
            });
            written
        })
    }
}

/// Capacity for an ordinary entry.
const ENTRY_BYTES: usize = 640;

/// Each name and each value is preceded by its length.
const LENGTH_BYTES: usize = 4;

impl Default for Fields {
    fn default() -> Self {
        Fields::new()
    }
}

impl Fields {
    pub const fn new() -> Self {
        Fields { form: Form::Written(Vec::new()) }
    }

    /// Empty, with capacity for an ordinary entry.
    pub fn with_entry_capacity() -> Self {
        Fields { form: Form::Written(Vec::with_capacity(ENTRY_BYTES)) }
    }

    /// The fields of an event of our tracker, in the order of J2, then ours.
    pub fn of_event(event: TrafficEvent) -> Self {
        Fields { form: Form::Event(Box::new(EventForm { event, written: OnceLock::new() })) }
    }

    /// The event, if the entry was read from its packed form.
    pub fn as_event(&self) -> Option<&TrafficEvent> {
        match &self.form {
            Form::Written(_) => None,
            Form::Event(form) => Some(&form.event),
        }
    }

    pub fn push(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let written = self.written_mut();
        push_part(written, name.as_bytes());
        push_part(written, value.as_ref());
    }

    /// Adds a field whose value is formatted as text.
    pub fn push_text(&mut self, name: &str, value: impl fmt::Display) {
        let written = self.written_mut();
        push_part(written, name.as_bytes());
        let start = written.len();
        written.extend_from_slice(&[0; LENGTH_BYTES]);
        write!(written, "{value}").expect("writing to memory cannot fail");
        let length = length_of(written.len() - start - LENGTH_BYTES);
        written[start..start + LENGTH_BYTES].copy_from_slice(&length);
    }

    fn written_mut(&mut self) -> &mut Vec<u8> {
        if let Form::Event(form) = &self.form {
            self.form = Form::Written(form.written().clone());
        }
        match &mut self.form {
            Form::Written(written) => written,
            Form::Event(_) => unreachable!("replaced above"),
        }
    }

    /// In the order they were written.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.as_bytes() }
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(field, _)| *field == name.as_bytes()).map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// The packed form, as [`Fields::from_bytes`] expects it.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.form {
            Form::Written(written) => written,
            Form::Event(form) => form.written(),
        }
    }

    /// None if the bytes are not in the packed form.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let mut iter = Iter { rest: &bytes };
        while iter.next().is_some() {}
        iter.rest.is_empty().then_some(Fields { form: Form::Written(bytes) })
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut written = Vec::with_capacity(ENTRY_BYTES);
        for (name, value) in pairs {
            push_part(&mut written, name.as_ref());
            push_part(&mut written, value.as_ref());
        }
        Fields { form: Form::Written(written) }
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Fields {}

fn push_part(written: &mut Vec<u8>, part: &[u8]) {
    written.extend_from_slice(&length_of(part.len()));
    written.extend_from_slice(part);
}

fn length_of(length: usize) -> [u8; LENGTH_BYTES] {
    u32::try_from(length).expect("a value is shorter than 4 GiB").to_le_bytes()
}

#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = split_part(self.rest)?;
        let (value, rest) = split_part(rest)?;
        self.rest = rest;
        Some((name, value))
    }
}

fn split_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl fmt::Debug for Fields {
    /// Hides the passkey and the client's key: this is what logs show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.iter().map(|(name, value)| {
            let is_secret = name == b"passkey" || name == b"key";
            let value = if is_secret { "…".into() } else { String::from_utf8_lossy(value) };
            (String::from_utf8_lossy(name), value)
        });
        f.debug_map().entries(shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_fields_round_trip(pairs: Vec<(Vec<u8>, Vec<u8>)>) {
            let fields: Fields = pairs.iter().cloned().collect();
            let unpacked = Fields::from_bytes(fields.as_bytes().to_vec()).unwrap();
            let read: Vec<_> = unpacked.iter().map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn unpacking_never_panics(bytes: Vec<u8>) {
            if let Some(fields) = Fields::from_bytes(bytes) {
                let _ = fields.len();
            }
        }
    }

    #[test]
    fn a_passkey_is_not_in_the_debug_text() {
        let mut fields = Fields::new();
        fields.push("passkey", "0123456789abcdef");
        fields.push_text("port", 6881);
        let shown = format!("{fields:?}");
        assert!(!shown.contains("0123456789abcdef") && shown.contains("6881"), "{shown}");
    }
}
