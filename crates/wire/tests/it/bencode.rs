//! The bencode reader: what it accepts and refuses, and round trips.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wire::bencode::{BencodeError, MAX_DEPTH, Token, Tokens, Value, parse, push_bytes};

/// An owned value, to compare with.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Integer(i64),
    Bytes(Vec<u8>),
    List(Vec<Tree>),
    Dict(BTreeMap<Vec<u8>, Tree>),
}

impl Tree {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Tree::Integer(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
            Tree::Bytes(bytes) => push_bytes(out, bytes),
            Tree::List(items) => {
                out.push(b'l');
                items.iter().for_each(|item| item.write(out));
                out.push(b'e');
            }
            Tree::Dict(entries) => {
                out.push(b'd');
                for (key, value) in entries {
                    push_bytes(out, key);
                    value.write(out);
                }
                out.push(b'e');
            }
        }
    }

    fn read(value: Value<'_>) -> Tree {
        if let Some(number) = value.as_integer() {
            Tree::Integer(number)
        } else if let Some(bytes) = value.as_bytes() {
            Tree::Bytes(bytes.to_vec())
        } else if let Some(items) = value.items() {
            Tree::List(items.map(Tree::read).collect())
        } else {
            let entries = value.entries().expect("a value is one of four kinds");
            Tree::Dict(entries.map(|(key, value)| (key.to_vec(), Tree::read(value))).collect())
        }
    }
}

fn any_tree() -> impl Strategy<Value = Tree> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..12);
    let leaf = prop_oneof![any::<i64>().prop_map(Tree::Integer), bytes().prop_map(Tree::Bytes)];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Tree::List),
            prop::collection::btree_map(bytes(), inner, 0..8).prop_map(Tree::Dict),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(tree in any_tree()) {
        let mut text = Vec::new();
        tree.write(&mut text);
        let value = parse(&text).unwrap();
        prop_assert_eq!(value.raw(), &text[..]);
        prop_assert_eq!(Tree::read(value), tree);
    }

    #[test]
    fn no_prefix_and_no_addition_is_valid(tree in any_tree(), extra: u8) {
        let mut text = Vec::new();
        tree.write(&mut text);
        for end in 0..text.len() {
            prop_assert!(parse(&text[..end]).is_err());
        }
        let at = text.len();
        text.push(extra);
        prop_assert_eq!(parse(&text), Err(BencodeError::TrailingBytes { at }));
    }
}

#[test]
fn integers_have_one_spelling_and_sixty_four_bits() {
    let integer = |text: &str| parse(text.as_bytes()).map(|value| value.as_integer().unwrap());
    assert_eq!(integer("i0e"), Ok(0));
    assert_eq!(integer("i-42e"), Ok(-42));
    assert_eq!(integer("i9223372036854775807e"), Ok(i64::MAX));
    assert_eq!(integer("i-9223372036854775808e"), Ok(i64::MIN));
    for text in [
        "ie",
        "i-e",
        "i-0e",
        "i00e",
        "i01e",
        "i-01e",
        "i+1e",
        "i1.5e",
        "i 1e",
        "i9223372036854775808e",
        "i-9223372036854775809e",
    ] {
        assert_eq!(integer(text), Err(BencodeError::BadInteger { at: 0 }), "{text}");
    }
    for text in ["i", "i-", "i1", "i-1"] {
        assert_eq!(integer(text), Err(BencodeError::UnexpectedEnd), "{text}");
    }
}

#[test]
fn string_lengths_have_one_spelling_and_stay_inside_the_text() {
    assert_eq!(parse(b"4:sp\xff:").unwrap().as_bytes(), Some(&b"sp\xff:"[..]));
    assert_eq!(parse(b"4:sp\xff:").unwrap().as_str(), None);
    assert_eq!(parse(b"0:").unwrap().as_str(), Some(""));
    for text in [&b"00:"[..], b"01:a", b"1a", b"2:a", b"99999999999999999999999:a", b"18446744073709551615:a"]
    {
        assert_eq!(parse(text), Err(BencodeError::BadLength { at: 0 }), "{}", text.escape_ascii());
    }
    assert_eq!(parse(b"1"), Err(BencodeError::UnexpectedEnd));
}

#[test]
fn dictionary_keys_are_strings_in_order_with_values() {
    assert_eq!(parse(b"d1:ai1e2:aai2e1:bi3ee").unwrap().get(b"aa").unwrap().as_integer(), Some(2));
    assert_eq!(parse(b"d1:ai1e1:ci3ee").unwrap().get(b"b"), None);
    assert_eq!(parse(b"d1:bi1e1:ai2ee"), Err(BencodeError::KeyOutOfOrder { at: 7 }));
    assert_eq!(parse(b"d1:ai1e1:ai2ee"), Err(BencodeError::KeyOutOfOrder { at: 7 }));
    assert_eq!(parse(b"di1ei2ee"), Err(BencodeError::KeyNotAString { at: 1 }));
    assert_eq!(parse(b"dd1:ai1ee1:be"), Err(BencodeError::KeyNotAString { at: 1 }));
    assert_eq!(parse(b"d1:ae"), Err(BencodeError::KeyWithoutValue { at: 4 }));
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| [b"l".repeat(depth), b"e".repeat(depth)].concat();
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(parse(&nested(MAX_DEPTH + 1)), Err(BencodeError::TooDeep { at: MAX_DEPTH }));
    assert_eq!(parse(&b"d0:".repeat(1_000_000)), Err(BencodeError::TooDeep { at: 3 * MAX_DEPTH }));
}

#[test]
fn stray_bytes_are_refused_where_they_stand() {
    assert_eq!(parse(b""), Err(BencodeError::UnexpectedEnd));
    assert_eq!(parse(b"e"), Err(BencodeError::UnexpectedByte { at: 0 }));
    assert_eq!(parse(b"li1e e"), Err(BencodeError::UnexpectedByte { at: 4 }));
    assert_eq!(parse(b"i1ei2e"), Err(BencodeError::TrailingBytes { at: 3 }));
}

#[test]
fn values_of_another_kind_give_none() {
    let list = parse(b"li1ee").unwrap();
    assert!(list.as_integer().is_none() && list.as_bytes().is_none() && list.entries().is_none());
    assert_eq!(list.get(b"a"), None);
    assert!(parse(b"1:l").unwrap().items().is_none());
    assert_eq!(format!("{list:?}"), "bencode \"li1ee\"");
}

#[test]
fn tokens_come_one_by_one() {
    let mut tokens = Tokens::new(b"d1:ali1eee");
    let mut seen = Vec::new();
    while !tokens.is_at_end() {
        seen.push((tokens.position(), tokens.read().unwrap()));
    }
    let expected = [
        (0, Token::DictStart),
        (1, Token::Bytes(b"a")),
        (4, Token::ListStart),
        (5, Token::Integer(1)),
        (8, Token::End),
        (9, Token::End),
    ];
    assert_eq!(seen, expected);
    assert_eq!(tokens.read(), Err(BencodeError::UnexpectedEnd));
}
