//! Torrent files of both versions. The hashes were computed by another program.

use proptest::prelude::*;
use wire::bencode::{BencodeError, push_bytes, push_integer};
use wire::metainfo::{MAX_METAINFO_BYTES, Metainfo, MetainfoError};

const INFO_V1: &str =
    "d6:lengthi12345e4:name8:file.iso12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaa7:privatei1ee";
/// Three files of 5, 0 and 7 bytes.
const FILE_TREE: &str = "9:file treed3:dird1:ad0:d6:lengthi5e11:pieces root32:rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrree\
    1:bd0:d6:lengthi0eeee5:otherd0:d6:lengthi7eeee";

fn torrent(info: &str) -> Vec<u8> {
    format!("d8:announce23:http://t.example/key/an13:creation datei1e4:info{info}e").into_bytes()
}

fn parse_info(info: &str) -> Result<Metainfo, MetainfoError> {
    Metainfo::parse(&torrent(info))
}

/// A version 1 info dictionary of the given entries, which must be in order.
fn info_of(entries: &str) -> Result<Metainfo, MetainfoError> {
    parse_info(&format!("d{entries}e"))
}

#[test]
fn t1_a_version_1_torrent_is_known_by_its_sha_1() {
    let expected = Metainfo {
        info_hash: "228f7444e1b0317c4d2d4287331606ad47abbfa7".parse().unwrap(),
        info_hash_v2: None,
        name: "file.iso".to_owned(),
        total_bytes: 12345,
        private: true,
        announce: Some("http://t.example/key/an".to_owned()),
    };
    assert_eq!(parse_info(INFO_V1), Ok(expected.clone()));
    let without_announce = format!("d4:info{INFO_V1}e");
    assert_eq!(Metainfo::parse(without_announce.as_bytes()), Ok(Metainfo { announce: None, ..expected }));
}

#[test]
fn t1_a_version_2_torrent_is_known_by_its_truncated_sha_256() {
    let info = format!("d{FILE_TREE}12:meta versioni2e4:name3:dir12:piece lengthi16384ee");
    let parsed = parse_info(&info).unwrap();
    assert_eq!(parsed.info_hash, "c9da34367c2915054b1d7c173d3150bdd8e08eac".parse().unwrap());
    assert_eq!((parsed.info_hash_v2, parsed.total_bytes, parsed.private), (None, 12, false));
}

#[test]
fn t1_a_hybrid_is_known_by_both_and_padding_does_not_count() {
    let pieces = "p".repeat(40);
    let v1_files = "5:filesld6:lengthi5e4:pathl1:aeed4:attr1:p6:lengthi16379e4:pathl4:.padee\
        d6:lengthi7e4:pathl5:othereee";
    let rest = format!("4:name3:dir12:piece lengthi16384e6:pieces40:{pieces}");
    let hybrid = parse_info(&format!("d{FILE_TREE}{v1_files}12:meta versioni2e{rest}e")).unwrap();
    assert_eq!(hybrid.info_hash, "bc365d62ee28cb3efb33b98c7ea62758050b8e1d".parse().unwrap());
    assert_eq!(hybrid.info_hash_v2, "16c7a3007652b22f643abe55d9fbcddec6089ab7".parse().ok());
    assert_eq!(hybrid.total_bytes, 12);
    assert_eq!(info_of(&format!("{v1_files}{rest}")).unwrap().total_bytes, 12);
}

#[test]
fn only_the_number_one_makes_a_torrent_private() {
    for (private, expected) in
        [("7:privatei1e", true), ("7:privatei0e", false), ("7:private1:1", false), ("", false)]
    {
        let info = format!("6:lengthi1e4:name1:n12:piece lengthi1e6:pieces0:{private}");
        assert_eq!(info_of(&info).unwrap().private, expected);
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_still_shown() {
    let mut file = torrent("d6:lengthi1e4:name3:a?b12:piece lengthi1e6:pieces0:e");
    let at = file.iter().position(|byte| *byte == b'?').unwrap();
    file[at] = 0xff;
    assert_eq!(Metainfo::parse(&file).unwrap().name, "a\u{fffd}b");
    let both = "6:lengthi1e4:name3:a?b10:name.utf-84:a\u{f6}b12:piece lengthi1e6:pieces0:";
    assert_eq!(info_of(both).unwrap().name, "a\u{f6}b");
}

#[test]
fn what_is_wrong_is_named() {
    let message = |file: &[u8]| Metainfo::parse(file).unwrap_err().to_string();
    assert_eq!(message(b""), "the file is not valid bencode: unexpected end of input");
    assert_eq!(message(b"<html>"), "the file is not valid bencode: unexpected byte at 0");
    assert_eq!(message(b"le"), "the file is not a dictionary");
    assert_eq!(message(b"de"), "\"info\" is missing");
    assert_eq!(message(b"d4:infolee"), "\"info\" is not a dictionary");
    assert_eq!(message(b"d4:infodee"), "\"piece length\" is missing");
    let info = |entries: &str| info_of(entries).unwrap_err().to_string();
    assert_eq!(info("12:piece lengthi0e"), "\"piece length\" is not a positive number");
    assert_eq!(info("12:piece lengthi1e"), "\"pieces\" is missing");
    assert_eq!(info("12:piece lengthi1e6:pieces1:x"), "\"pieces\" is not a string of 20-byte hashes");
    assert_eq!(info("12:meta versioni3e12:piece lengthi1e"), "\"meta version\" is not 2");
    assert_eq!(info("12:piece lengthi1e6:pieces0:"), "\"name\" is missing");
    assert_eq!(info("4:name0:12:piece lengthi1e6:pieces0:"), "\"name\" is not a string of 1 to 4096 bytes");
    let tail = "4:name1:n12:piece lengthi1e6:pieces0:";
    assert_eq!(info(tail), "\"length\" is missing");
    assert_eq!(info(&format!("6:lengthi-1e{tail}")), "\"length\" is not a number of bytes");
    assert_eq!(info(&format!("5:filesle6:lengthi1e{tail}")), "\"files\" is not allowed beside \"length\"");
    assert_eq!(info(&format!("5:filesde{tail}")), "\"files\" is not a list");
    assert_eq!(info(&format!("5:filesldee{tail}")), "\"length\" is missing");
    assert_eq!(info("12:meta versioni2e4:name1:n12:piece lengthi1e"), "\"file tree\" is missing");
    assert_eq!(
        info("9:file treed1:ai1ee12:meta versioni2e4:name1:n12:piece lengthi1e"),
        "\"file tree\" is not a tree of dictionaries"
    );
}

#[test]
fn sizes_that_do_not_add_up_are_refused() {
    let file = format!("d6:lengthi{}ee", i64::MAX);
    let info = |count| format!("5:filesl{}e4:name1:n12:piece lengthi1e6:pieces0:", file.repeat(count));
    assert_eq!(info_of(&info(2)).unwrap().total_bytes, u64::MAX - 1);
    assert_eq!(info_of(&info(3)), Err(MetainfoError::TotalTooLarge));
}

#[test]
fn too_large_and_too_deep_files_are_refused() {
    assert_eq!(Metainfo::parse(&vec![b'l'; MAX_METAINFO_BYTES + 1]), Err(MetainfoError::TooLarge));
    let deep = Metainfo::parse(&vec![b'l'; MAX_METAINFO_BYTES]).unwrap_err();
    assert_eq!(deep, MetainfoError::Bencode(BencodeError::TooDeep { at: 64 }));
    let long = format!("6:lengthi1e4:name4097:{}12:piece lengthi1e6:pieces0:", "n".repeat(4097));
    assert!(matches!(info_of(&long), Err(MetainfoError::Invalid { key: "name", .. })));
}

proptest! {
    #[test]
    fn any_list_of_files_adds_up(
        lengths in prop::collection::vec(0..1_u64 << 48, 0..20), name in "[^\0]{1,40}", private: bool,
    ) {
        let mut file = b"d4:infod5:filesl".to_vec();
        for length in &lengths {
            file.extend_from_slice(b"d6:length");
            push_integer(&mut file, *length);
            file.extend_from_slice(b"4:pathl1:xee");
        }
        file.extend_from_slice(b"e4:name");
        push_bytes(&mut file, name.as_bytes());
        file.extend_from_slice(b"12:piece lengthi16384e6:pieces0:7:private");
        push_integer(&mut file, private.into());
        file.extend_from_slice(b"ee");
        let parsed = Metainfo::parse(&file).unwrap();
        prop_assert_eq!(parsed.total_bytes, lengths.iter().sum::<u64>());
        prop_assert_eq!((parsed.name, parsed.private), (name, private));
    }
}
