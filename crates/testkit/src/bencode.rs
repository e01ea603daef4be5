//! An independent bencode parser.
//!
//! Tests that parse replies with the code that wrote them would share its mistakes. This one is slow and strict: it
//! panics on unordered keys, numbers with leading zeros and trailing bytes.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `i…e`
    Integer(i64),
    /// `n:…`
    Bytes(Vec<u8>),
    /// `l…e`
    List(Vec<Value>),
    /// `d…e`
    Dict(BTreeMap<Vec<u8>, Value>),
}

impl Value {
    /// A text as a value.
    pub fn text(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }

    pub fn dict<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::Dict(entries.into_iter().map(|(key, value)| (key.as_bytes().to_vec(), value)).collect())
    }

    /// The entry of a dictionary.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Dict(entries) => entries.get(key.as_bytes()),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The bytes, if it is a string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_text(&self) -> Option<String> {
        self.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Value::Integer(number) => out.extend(format!("i{number}e").bytes()),
            Value::Bytes(bytes) => {
                out.extend(format!("{}:", bytes.len()).bytes());
                out.extend(bytes);
            }
            Value::List(items) => {
                out.push(b'l');
                items.iter().for_each(|item| item.encode_into(out));
                out.push(b'e');
            }
            Value::Dict(entries) => {
                out.push(b'd');
                for (key, value) in entries {
                    Value::Bytes(key.clone()).encode_into(out);
                    value.encode_into(out);
                }
                out.push(b'e');
            }
        }
    }

    /// Reads a whole text; panics unless it is one value, well formed to the last byte.
    #[track_caller]
    pub fn decode(bytes: &[u8]) -> Value {
        let mut reader = Reader { bytes, position: 0 };
        let value = reader.value();
        assert!(reader.position == bytes.len(), "{}", reader.complaint("bytes after the value"));
        value
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Value {
        match self.peek() {
            b'i' => {
                self.position += 1;
                Value::Integer(self.number_until(b'e'))
            }
            b'l' => {
                self.position += 1;
                let mut items = Vec::new();
                while !self.at_end_of_container() {
                    items.push(self.value());
                }
                Value::List(items)
            }
            b'd' => {
                self.position += 1;
                Value::Dict(self.entries())
            }
            _ => Value::Bytes(self.string()),
        }
    }

    fn entries(&mut self) -> BTreeMap<Vec<u8>, Value> {
        let mut entries: BTreeMap<Vec<u8>, Value> = BTreeMap::new();
        while !self.at_end_of_container() {
            let key = self.string();
            let in_order = entries.last_key_value().is_none_or(|(last, _)| *last < key);
            assert!(in_order, "{}", self.complaint("a key that is out of order"));
            let value = self.value();
            entries.insert(key, value);
        }
        entries
    }

    fn string(&mut self) -> Vec<u8> {
        let length = usize::try_from(self.number_until(b':')).expect("a length is not negative");
        let end = self.position + length;
        assert!(end <= self.bytes.len(), "{}", self.complaint("a string longer than the text"));
        let string = self.bytes[self.position..end].to_vec();
        self.position = end;
        string
    }

    fn number_until(&mut self, end: u8) -> i64 {
        let digits: Vec<u8> = self.bytes[self.position..].iter().copied().take_while(|b| *b != end).collect();
        let text = String::from_utf8_lossy(&digits).into_owned();
        let number: i64 = text.parse().unwrap_or_else(|_| panic!("{}", self.complaint("a bad number")));
        assert!(number.to_string() == text, "{}", self.complaint("a number not in its shortest form"));
        self.position += digits.len() + 1;
        number
    }

    fn at_end_of_container(&mut self) -> bool {
        let at_end = self.peek() == b'e';
        if at_end {
            self.position += 1;
        }
        at_end
    }

    fn peek(&self) -> u8 {
        *self.bytes.get(self.position).unwrap_or_else(|| panic!("{}", self.complaint("an early end")))
    }

    fn complaint(&self, what: &str) -> String {
        format!("{what} at byte {} of {:?}", self.position, String::from_utf8_lossy(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went() {
        let value = Value::dict([
            ("peers", Value::Bytes(vec![0, 255, b'e'])),
            ("list", Value::List(vec![Value::Integer(-7), Value::text("")])),
            ("interval", Value::Integer(1800)),
        ]);
        let bytes = value.encode();
        assert_eq!(bytes, b"d8:intervali1800e4:listli-7e0:e5:peers3:\x00\xffee".to_vec());
        assert_eq!(Value::decode(&bytes), value);
    }

    #[test]
    #[should_panic(expected = "a key that is out of order")]
    fn keys_out_of_order_are_a_failed_test() {
        Value::decode(b"d1:bi1e1:ai1ee");
    }

    #[test]
    #[should_panic(expected = "bytes after the value")]
    fn bytes_left_over_are_a_failed_test() {
        Value::decode(b"i1e\n");
    }
}
