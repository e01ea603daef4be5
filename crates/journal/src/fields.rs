//! The fields of an entry: names and values, in order.

use std::fmt;
use std::io::Write as _;

/// Names and values in one buffer: one allocation per entry.
///
/// Values are bytes: other producers may write anything, and malformed entries must be kept as well.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields {
    packed: Vec<u8>,
}

/// Each name and each value is preceded by its length.
const LENGTH_BYTES: usize = 4;

impl Fields {
    pub fn new() -> Self {
        Fields::default()
    }

    /// Empty, with capacity for an ordinary entry.
    pub fn with_entry_capacity() -> Self {
        Fields { packed: Vec::with_capacity(640) }
    }

    pub fn push(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.push_part(name.as_bytes());
        self.push_part(value.as_ref());
    }

    /// Adds a field whose value is formatted as text.
    pub fn push_text(&mut self, name: &str, value: impl fmt::Display) {
        self.push_part(name.as_bytes());
        let start = self.packed.len();
        self.packed.extend_from_slice(&[0; LENGTH_BYTES]);
        write!(self.packed, "{value}").expect("writing to memory cannot fail");
        let length = length_of(self.packed.len() - start - LENGTH_BYTES);
        self.packed[start..start + LENGTH_BYTES].copy_from_slice(&length);
    }

    fn push_part(&mut self, part: &[u8]) {
        self.packed.extend_from_slice(&length_of(part.len()));
        self.packed.extend_from_slice(part);
    }

    /// In the order they were written.
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.packed }
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(field, _)| *field == name.as_bytes()).map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.iter().count()
    }

    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The packed form, as [`Fields::from_bytes`] expects it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.packed
    }

    /// None if the bytes are not in the packed form.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let mut iter = Iter { rest: &bytes };
        while iter.next().is_some() {}
        iter.rest.is_empty().then_some(Fields { packed: bytes })
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut fields = Fields::with_entry_capacity();
        for (name, value) in pairs {
            fields.push_part(name.as_ref());
            fields.push_part(value.as_ref());
        }
        fields
    }
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
