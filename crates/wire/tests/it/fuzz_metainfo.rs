//! Any bytes as bencode or as a torrent file: no panic, bounded results, and the same bytes when written again.

use wire::bencode::{self, Value, push_bytes};
use wire::metainfo::{MAX_TEXT_BYTES, Metainfo};

/// Parts of real files. Low bytes of the input select them, so that random input passes the first check.
const PIECES: [&[u8]; 32] = [
    b"d",
    b"l",
    b"e",
    b"i0e",
    b"i-1e",
    b"i9223372036854775807e",
    b"i9223372036854775808e",
    b"0:",
    b"1:a",
    b"1:b",
    b"4:info",
    b"d4:infod",
    b"8:announce4:http",
    b"4:attr1:p",
    b"9:file treed",
    b"0:d6:lengthi5ee",
    b"5:filesl",
    b"d6:lengthi7ee",
    b"6:lengthi7e",
    b"12:meta versioni2e",
    b"4:name1:n",
    b"10:name.utf-81:n",
    b"12:piece lengthi16384e",
    b"6:pieces20:aaaaaaaaaaaaaaaaaaaa",
    b"7:privatei1e",
    b"ee",
    b"i00e",
    b"99999999999999999999:",
    b"5:",
    b"6:length",
    b"4:path",
    b"i5e",
];

fn assemble(input: &[u8]) -> Vec<u8> {
    input.iter().flat_map(|byte| PIECES[usize::from(*byte) % PIECES.len()]).copied().collect()
}

fn check_file(text: &[u8]) {
    if let Ok(value) = bencode::parse(text) {
        let mut out = Vec::new();
        write_again(value, &mut out);
        assert_eq!(out, text);
    }
    match Metainfo::parse(text) {
        // A byte that is not UTF-8 is replaced by a character of three.
        Ok(metainfo) => {
            assert!(metainfo.name.len() <= 3 * MAX_TEXT_BYTES);
            assert!(metainfo.announce.is_none_or(|url| url.len() <= MAX_TEXT_BYTES));
        }
        Err(error) => assert!(error.to_string().len() < 128),
    }
}

fn write_again(value: Value<'_>, out: &mut Vec<u8>) {
    if let Some(number) = value.as_integer() {
        out.extend_from_slice(format!("i{number}e").as_bytes());
    } else if let Some(bytes) = value.as_bytes() {
        push_bytes(out, bytes);
    } else if let Some(items) = value.items() {
        out.push(b'l');
        items.for_each(|item| write_again(item, out));
        out.push(b'e');
    } else {
        out.push(b'd');
        let mut last = None;
        for (key, value) in value.entries().expect("a value is one of four kinds") {
            assert!(last.replace(key).is_none_or(|last| last < key), "keys ascend");
            push_bytes(out, key);
            write_again(value, out);
        }
        out.push(b'e');
    }
}

/// A torrent file of parts that the input selects, in the order of bencode. Most are valid.
fn well_formed(input: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 9] = [
        b"9:file treed1:ad0:d6:lengthi5eee1:bd1:cd0:d6:lengthi6eeeee",
        b"5:filesld4:attr1:p6:lengthi3eed6:lengthi7eee",
        b"6:lengthi7e",
        b"12:meta versioni2e",
        b"4:name2:n\xff",
        b"10:name.utf-81:n",
        b"12:piece lengthi16384e",
        b"6:pieces20:aaaaaaaaaaaaaaaaaaaa",
        b"7:privatei1e",
    ];
    let mut text = b"d8:announce4:http4:infod".to_vec();
    for (at, part) in parts.into_iter().enumerate() {
        if input.get(at).is_some_and(|byte| byte % 8 != 0) {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"ee");
    text
}

/// The same with one part inserted.
fn nearly_well_formed(input: &[u8]) -> Vec<u8> {
    let mut text = well_formed(input);
    if let [at, piece, ..] = input {
        let at = usize::from(*at) % text.len();
        let piece = PIECES.get(usize::from(*piece)).copied().unwrap_or(std::slice::from_ref(piece));
        text.splice(at..at, piece.iter().copied());
    }
    text
}

#[test]
fn fuzz_bencode_and_metainfo() {
    bolero::check!().for_each(|input: &[u8]| {
        check_file(input);
        check_file(&assemble(input));
        check_file(&well_formed(input));
        check_file(&nearly_well_formed(input));
    });
}

/// Checks the fuzzing itself: the parts must be able to form a torrent.
#[test]
fn the_parts_make_valid_torrents() {
    let hybrid = Metainfo::parse(&well_formed(&[1; 9])).unwrap();
    assert!(hybrid.info_hash_v2.is_some() && hybrid.total_bytes == 11);
    let single = Metainfo::parse(&well_formed(&[0, 0, 1, 0, 1, 1, 1, 1, 1])).unwrap();
    assert!(single.private && single.total_bytes == 7);
}
