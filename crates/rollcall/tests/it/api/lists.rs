//! Multipliers, the journal, and what every list and every answer have in common.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use testkit::{Announce, eventually, eventually_equal};

use crate::api::{PATIENCE, add_torrent, announce, builder, problem};

#[test]
fn multipliers_are_added_listed_and_ended() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let add = |said: Json| admin.post("/api/v1/multipliers", &said);
    let added =
        add(json!({ "scope": "site", "upload_percent": 300, "download_percent": 0, "note": "feast" }));
    assert_eq!(added.status(), 201);
    let site = added.json();
    assert_eq!(
        (&site["scope"], &site["subject"], &site["ends_at"]),
        (&"site".into(), &0.into(), &Json::Null)
    );
    let user = add(json!({ "scope": "user", "subject": 9, "starts_at": 10, "ends_at": 20 })).ok();
    assert_eq!(
        (&user["upload_percent"], &user["starts_at"], &user["ends_at"]),
        (&100.into(), &10.into(), &20.into())
    );
    assert_eq!(read.get("/api/v1/multipliers").ok(), json!({ "items": [site, user], "next": null }));
    for wrong in [
        json!({ "scope": "all" }),
        json!({ "scope": "site", "subject": 4 }),
        json!({ "scope": "user" }),
        json!({ "scope": "site", "upload_percent": 10_001 }),
        json!({ "scope": "site", "starts_at": 20, "ends_at": 10 }),
        json!({ "scope": "site", "note": "nul\u{0}" }),
    ] {
        assert_eq!(problem(&add(wrong.clone()), 400), "bad_request", "{wrong}");
    }
    let client = Announce::seeder(hash, 1);
    announce(&server, &passkey, &client);
    announce(&server, &passkey, &client.with_totals(1000, 500, 0));
    let figures = eventually("the account", PATIENCE, || {
        let figures = read.get("/api/v1/users/1").ok()["figures"].clone();
        (figures["uploaded"] == "1000").then_some(figures)
    });
    assert_eq!(
        (&figures["credited_uploaded"], &figures["credited_downloaded"]),
        (&"3000".into(), &"0".into())
    );
    let path = format!("/api/v1/multipliers/{}", site["id"]);
    assert_eq!(admin.delete(&path).status(), 204);
    assert_eq!(problem(&admin.delete(&path), 404), "unknown_multiplier");
    let listed = read.get("/api/v1/multipliers").ok()["items"].clone();
    assert_eq!(listed[1], user);
    assert_eq!(listed[0]["id"], site["id"], "an ended multiplier is kept");
    assert!(listed[0]["ends_at"].as_u64() > listed[0]["starts_at"].as_u64(), "{listed}");
    assert_eq!(read.get("/api/v1/users/1").ok()["figures"], figures, "what was credited stays");
}

#[test]
fn j7_j9_the_journal_is_shown_and_its_views_pause_and_go_on() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let pause = |view: &str, paused: bool| {
        admin.json("PATCH", &format!("/api/v1/journal/views/{view}"), &json!({ "paused": paused }))
    };
    let group = |view: &str| -> Json {
        let status = read.get("/api/v1/journal").ok();
        let groups = status["groups"].as_array().unwrap();
        groups.iter().find(|group| group["view"] == view).unwrap().clone()
    };
    announce(&server, &passkey, &Announce::seeder(hash, 1));
    eventually_equal(Json::from(0), PATIENCE, || group("activity")["lag"].clone());
    assert_eq!(pause("activity", true).ok(), json!({ "view": "activity", "paused": true }));
    assert_eq!((&group("activity")["paused"], &group("ledger")["paused"]), (&true.into(), &false.into()));
    // It finishes what it has; then it takes nothing more.
    eventually("the view to wait", PATIENCE, || {
        announce(&server, &passkey, &Announce::seeder(hash, 1));
        (group("activity")["lag"].as_u64() > Some(0)).then_some(())
    });
    eventually_equal(Json::from(0), PATIENCE, || group("ledger")["lag"].clone());
    let waiting = group("activity");
    assert!(waiting["behind_s"].as_f64() >= Some(0.0) && waiting["group"] == "activity", "{waiting}");
    assert_eq!(pause("activity", false).ok()["paused"], false);
    eventually_equal(Json::from(0), PATIENCE, || group("activity")["lag"].clone());
    let status = read.get("/api/v1/journal").ok();
    assert!(status["appended"].as_u64() >= Some(2) && status["entries"].as_u64() >= Some(2), "{status}");
    assert_eq!(
        (&status["dlq"], &status["failed"], &status["too_long"]),
        (&0.into(), &0.into(), &false.into())
    );
    assert_eq!(problem(&pause("nothing", true), 404), "unknown_view");
    assert_eq!(problem(&pause("activity%2F..", true), 404), "unknown_view");
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    admin.post("/api/v1/users", &json!({ "id": 1 })).ok();
    let first = eventually("the user to be counted", PATIENCE, || {
        Some(read.get("/api/v1/users")).filter(|reply| reply.ok()["total"] == 1)
    });
    let tag = first.reply.header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    let again =
        |api: &testkit::Api, tags: &str| api.send("GET", "/api/v1/users", &[("if-none-match", tags)], None);
    for tags in [&*tag, &format!("\"other\", W/{tag}"), "*"] {
        let reply = again(&read, tags);
        assert_eq!((reply.status(), reply.reply.body.len()), (304, 0), "{tags}");
        assert_eq!(reply.reply.header("etag"), Some(&*tag));
    }
    assert_eq!(again(&read, "\"other\"").status(), 200);
    assert_eq!(again(&admin, &tag).status(), 200, "an admin is told more");
    assert_eq!(again(&server.anonymous_api(), &tag).status(), 401, "a tag is no key");
    admin.post("/api/v1/users", &json!({ "id": 2 })).ok();
    let changed = again(&read, &tag);
    assert_eq!(changed.status(), 200);
    assert_ne!(changed.reply.header("etag"), Some(&*tag));
    assert_eq!(problem(&read.get("/api/v1/users/9"), 404), "unknown_user");
    assert_eq!(read.get("/api/v1/users/9").reply.header("etag"), None);
}

#[test]
fn every_response_has_nosniff_and_no_store() {
    let server = builder().start();
    let (stranger, read) = (server.anonymous_api(), server.api(&["read"]));
    for reply in
        [stranger.get("/healthz"), stranger.get("/docs"), stranger.get("/nothing"), read.get("/api/v1/stats")]
    {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(reply.reply.header(name), Some(value));
        }
        assert!(reply.reply.header("content-security-policy").unwrap().contains("default-src 'none'"));
        assert!(reply.reply.header("cache-control").is_some());
    }
    let docs = stranger.get("/docs");
    assert_eq!(docs.reply.header("content-type"), Some("text/html; charset=utf-8"));
    let docs = String::from_utf8(docs.reply.body).unwrap();
    assert!(docs.contains("/api/v1/users/{id}/seeding") && !docs.contains("<script"), "{docs}");
}

#[test]
fn the_api_page_is_in_the_language_of_the_link_or_of_the_browser() {
    let server = builder().start();
    let stranger = server.anonymous_api();
    let page = |path: &str| {
        let reply = stranger.get(path).reply;
        (reply.header("content-language").unwrap().to_owned(), String::from_utf8(reply.body).unwrap())
    };
    let (language, english) = page("/docs");
    assert!(language == "en" && english.contains("<p class=\"summary\">List users</p>"), "{language}");
    let (_, user_page) = english.split_once("<h4>ListedUser</h4>").unwrap();
    let fields = &user_page[..user_page.find("</table>").unwrap()];
    assert!(fields.contains("<code>passkey</code>") && fields.contains("<code>ratio</code>"), "{fields}");
    let (language, chinese) = page("/docs?lang=zh");
    assert_eq!(language, "zh-CN");
    for text in ["<html lang=\"zh-CN\">", "<h2 id=\"users\">用户</h2>", "<p class=\"summary\">列出用户</p>"]
    {
        assert!(chinese.contains(text), "{text}");
    }
    for (path, methods) in stranger.get("/openapi.json").ok()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let summary =
                operation["summary"].as_str().unwrap().replace("`.torrent`", "<code>.torrent</code>");
            assert!(
                !chinese.contains(&format!("<p class=\"summary\">{summary}</p>")),
                "{method} {path} is in English"
            );
        }
    }
}

/// A reworded description is in English until it is translated again: a few may be.
#[test]
fn nearly_all_texts_of_the_api_page_are_translated() {
    let translated: BTreeMap<String, String> =
        serde_json::from_str(include_str!("../../../../site/src/openapi/zh.json")).unwrap();
    let mut texts = BTreeSet::new();
    collect_texts(&builder().start().anonymous_api().get("/openapi.json").ok(), &mut texts);
    let missing: Vec<&String> = texts.iter().filter(|text| !translated.contains_key(*text)).collect();
    assert!(texts.len() > 500 && missing.len() * 20 < texts.len(), "add to zh.json: {missing:#?}");
}

fn collect_texts(json: &Json, texts: &mut BTreeSet<String>) {
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::String(text) if ["summary", "description"].contains(&&**name) => {
                        let paragraphs = text.split("\n\n");
                        texts.extend(
                            paragraphs.map(|one| one.split_whitespace().collect::<Vec<_>>().join(" ")),
                        );
                    }
                    other => collect_texts(other, texts),
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}
