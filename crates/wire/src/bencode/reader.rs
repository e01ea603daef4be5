//! Reading: tokens, then checked values that borrow from the text.

use std::cmp::Ordering;

/// Maximum nesting of lists and dictionaries.
pub const MAX_DEPTH: usize = 64;

/// Positions count bytes from the start of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BencodeError {
    #[error("unexpected end of input")]
    UnexpectedEnd,
    /// No value begins with this byte, or none may begin here.
    #[error("unexpected byte at {at}")]
    UnexpectedByte { at: usize },
    /// An integer with leading zeros, without digits, or outside of 64 bits.
    #[error("bad integer at {at}")]
    BadInteger { at: usize },
    /// A length with leading zeros, or a byte string longer than what is left.
    #[error("bad string length at {at}")]
    BadLength { at: usize },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested too deeply at {at}")]
    TooDeep { at: usize },
    /// A dictionary key that is not a byte string.
    #[error("dictionary key at {at} is not a string")]
    KeyNotAString { at: usize },
    /// Keys must be in strictly ascending order.
    #[error("dictionary keys out of order or repeated at {at}")]
    KeyOutOfOrder {
        /// Where the later key begins.
        at: usize,
    },
    /// A dictionary that ends after a key.
    #[error("dictionary key without a value at {at}")]
    KeyWithoutValue { at: usize },
    #[error("trailing bytes after the value, at {at}")]
    TrailingBytes { at: usize },
}

/// The smallest unit of bencode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// `i42e`
    Integer(i64),
    /// `4:spam`
    Bytes(&'a [u8]),
    /// `l`
    ListStart,
    /// `d`
    DictStart,
    /// The `e` of a list or dictionary.
    End,
}

/// Reads one token after another, without checking their nesting.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Tokens { text, at: 0 }
    }

    /// Where the next token begins.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// [`BencodeError::UnexpectedEnd`] at the end of the text.
    pub fn read(&mut self) -> Result<Token<'a>, BencodeError> {
        let first = *self.text.get(self.at).ok_or(BencodeError::UnexpectedEnd)?;
        match first {
            b'i' => self.read_integer(),
            b'0'..=b'9' => self.read_bytes(),
            b'l' => Ok(self.step(Token::ListStart)),
            b'd' => Ok(self.step(Token::DictStart)),
            b'e' => Ok(self.step(Token::End)),
            _ => Err(BencodeError::UnexpectedByte { at: self.at }),
        }
    }

    fn step(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    fn read_integer(&mut self) -> Result<Token<'a>, BencodeError> {
        let bad = BencodeError::BadInteger { at: self.at };
        let body = &self.text[self.at + 1..];
        let negative = body.first() == Some(&b'-');
        let digits = if negative { &body[1..] } else { body };
        // Summed as a negative number, because `i64::MIN` has no positive counterpart.
        let mut sum = 0_i64;
        let mut length = 0;
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            if length == 1 && sum == 0 {
                return Err(bad);
            }
            sum = sum.checked_mul(10).and_then(|s| s.checked_sub(i64::from(digit - b'0'))).ok_or(bad)?;
            length += 1;
        }
        let number = if negative { Some(sum) } else { sum.checked_neg() }.ok_or(bad)?;
        match digits.get(length) {
            None => Err(BencodeError::UnexpectedEnd),
            Some(b'e') if length > 0 && !(negative && sum == 0) => {
                self.at += 1 + usize::from(negative) + length + 1;
                Ok(Token::Integer(number))
            }
            Some(_) => Err(bad),
        }
    }

    fn read_bytes(&mut self) -> Result<Token<'a>, BencodeError> {
        let bad = BencodeError::BadLength { at: self.at };
        let mut cursor = self.at;
        let mut length = 0_usize;
        while let Some(digit @ b'0'..=b'9') = self.text.get(cursor) {
            if cursor > self.at && length == 0 {
                return Err(bad);
            }
            length =
                length.checked_mul(10).and_then(|l| l.checked_add(usize::from(digit - b'0'))).ok_or(bad)?;
            cursor += 1;
        }
        match self.text.get(cursor) {
            None => return Err(BencodeError::UnexpectedEnd),
            Some(b':') => cursor += 1,
            Some(_) => return Err(bad),
        }
        let end = cursor.checked_add(length).filter(|end| *end <= self.text.len()).ok_or(bad)?;
        self.at = end;
        Ok(Token::Bytes(&self.text[cursor..end]))
    }
}

/// A list or dictionary whose end has not been read yet.
enum Open<'a> {
    List,
    DictBeforeKey { last: Option<&'a [u8]> },
    DictBeforeValue { key: &'a [u8] },
}

/// Checks a whole text; it must be one value.
pub fn parse(text: &[u8]) -> Result<Value<'_>, BencodeError> {
    let mut tokens = Tokens::new(text);
    let mut open: Vec<Open<'_>> = Vec::new();
    loop {
        let at = tokens.position();
        let token = tokens.read()?;
        if let Some(Open::DictBeforeKey { last }) = open.last_mut()
            && token != Token::End
        {
            let Token::Bytes(key) = token else { return Err(BencodeError::KeyNotAString { at }) };
            if last.is_some_and(|last| last >= key) {
                return Err(BencodeError::KeyOutOfOrder { at });
            }
            open.pop();
            open.push(Open::DictBeforeValue { key });
            continue;
        }
        match token {
            Token::ListStart | Token::DictStart if open.len() == MAX_DEPTH => {
                return Err(BencodeError::TooDeep { at });
            }
            Token::ListStart => {
                open.push(Open::List);
                continue;
            }
            Token::DictStart => {
                open.push(Open::DictBeforeKey { last: None });
                continue;
            }
            Token::End => match open.pop() {
                None => return Err(BencodeError::UnexpectedByte { at }),
                Some(Open::DictBeforeValue { .. }) => return Err(BencodeError::KeyWithoutValue { at }),
                Some(Open::List | Open::DictBeforeKey { .. }) => {}
            },
            Token::Integer(_) | Token::Bytes(_) => {}
        }
        // A value has just ended.
        match open.last_mut() {
            None => break,
            Some(Open::List) => {}
            Some(dict) => {
                if let Open::DictBeforeValue { key } = *dict {
                    *dict = Open::DictBeforeKey { last: Some(key) };
                }
            }
        }
    }
    if tokens.is_at_end() {
        Ok(Value { raw: text })
    } else {
        Err(BencodeError::TrailingBytes { at: tokens.position() })
    }
}

/// A checked value: a span of the text. Accessing its parts reads that span again, in linear time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    raw: &'a [u8],
}

impl<'a> Value<'a> {
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The number, if this is an integer.
    pub fn as_integer(&self) -> Option<i64> {
        match Tokens::new(self.raw).read() {
            Ok(Token::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// The bytes, if this is a byte string.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match Tokens::new(self.raw).read() {
            Ok(Token::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The text, if this is a byte string in UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The values in it, if this is a list.
    pub fn items(&self) -> Option<Items<'a>> {
        self.raw.strip_prefix(b"l").map(|rest| Items { rest })
    }

    /// The keys and values in it, if this is a dictionary.
    pub fn entries(&self) -> Option<Entries<'a>> {
        self.raw.strip_prefix(b"d").map(|rest| Entries { rest: Items { rest } })
    }

    /// The value of a key, if this is a dictionary that has it.
    pub fn get(&self, wanted: &[u8]) -> Option<Value<'a>> {
        for (key, value) in self.entries()? {
            match key.cmp(wanted) {
                Ordering::Less => {}
                Ordering::Equal => return Some(value),
                Ordering::Greater => return None,
            }
        }
        None
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bencode \"{}\"", self.raw.escape_ascii())
    }
}

/// The values of a list, in order.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let mut tokens = Tokens::new(self.rest);
        let mut depth = 0_usize;
        loop {
            // The text has been checked: errors cannot occur, and would end the list.
            match tokens.read().ok()? {
                Token::ListStart | Token::DictStart => depth += 1,
                Token::End => depth = depth.checked_sub(1)?,
                Token::Integer(_) | Token::Bytes(_) => {}
            }
            if depth == 0 {
                break;
            }
        }
        let (raw, rest) = self.rest.split_at(tokens.position());
        self.rest = rest;
        Some(Value { raw })
    }
}

/// The keys and values of a dictionary, in ascending order of the keys.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: Items<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.rest.next()?.as_bytes()?;
        Some((key, self.rest.next()?))
    }
}
