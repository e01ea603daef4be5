//! Operator sessions: what the cookie allows, what ends it, and browser attacks.

use access::Store;
use admin::Sessions;
use domain::clock::{Clock, SystemClock};
use domain::{Seconds, UnixTime};
use serde_json::{Value as Json, json};
use testkit::{Api, ApiReply, Authority, Server, eventually};

use crate::api::{PATIENCE, builder, items, metric, problem, quoted};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A browser that is signed in.
struct Browser {
    api: Api,
    cookie: String,
    csrf: String,
}

impl Browser {
    fn sign_in(server: &Server, key: &str) -> Browser {
        let reply = sign_in(server, key, &[]);
        let csrf = reply.ok()["csrf"].as_str().unwrap().to_owned();
        Browser { api: server.anonymous_api(), cookie: cookie_of(&reply), csrf }
    }

    fn get(&self, target: &str) -> ApiReply {
        self.send("GET", target, &[])
    }

    /// As our page sends it.
    fn change(&self, method: &str, target: &str, said: &Json) -> ApiReply {
        let body = said.to_string();
        let headers = [("cookie", &*self.cookie), ("x-csrf-token", &self.csrf), JSON];
        self.api.send(method, target, &headers, (!said.is_null()).then_some(body.as_bytes()))
    }

    /// As a page of any origin can make the browser send.
    fn send(&self, method: &str, target: &str, more: &[(&str, &str)]) -> ApiReply {
        let mut headers = vec![("cookie", &*self.cookie)];
        headers.extend(more);
        let body = (method != "GET" && method != "DELETE").then_some(&br#"{"id":66}"#[..]);
        self.api.send(method, target, &headers, body)
    }
}

fn sign_in(server: &Server, key: &str, more: &[(&str, &str)]) -> ApiReply {
    let mut headers = vec![JSON];
    headers.extend(more);
    let body = json!({ "key": key }).to_string();
    server.anonymous_api().send("POST", "/session", &headers, Some(body.as_bytes()))
}

/// The cookies that a browser sends back.
fn cookie_of(reply: &ApiReply) -> String {
    reply.reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

fn key(server: &Server, scope: &str) -> (String, Api) {
    let made = server.cli(&["key", "create", "--name", "ada — 管理", "--scope", scope]);
    let api = server.anonymous_api().with_key(made["key"].as_str().unwrap());
    eventually("the key to work", PATIENCE, || (api.get("/metrics").status() != 401).then_some(()));
    (made["id"].as_str().unwrap().to_owned(), api)
}

#[test]
fn an_operator_signs_in_works_and_signs_out() {
    let server = builder().set("site.session_minutes", 10).start();
    let (id, admin) = key(&server, "admin");
    let reply = sign_in(&server, admin.key().unwrap(), &[]);
    let set = reply.reply.header("set-cookie").unwrap().to_owned();
    assert!(set.starts_with("rollcall_session="), "{set}");
    assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=600"), "{set}");
    assert_eq!(reply.reply.header("cache-control"), Some("no-store"));
    let shown = reply.ok();
    assert_eq!((&shown["key_id"], &shown["name"]), (&json!(id), &json!("ada — 管理")));
    assert_eq!(shown["scopes"], json!(["admin"]));
    let ends_in = shown["expires_at"].as_u64().unwrap() - u64::from(SystemClock.now().0);
    assert!((500..=600).contains(&ends_in), "{ends_in}");
    let browser = Browser {
        api: server.anonymous_api(),
        cookie: cookie_of(&reply),
        csrf: shown["csrf"].as_str().unwrap().to_owned(),
    };
    assert_eq!(browser.get("/session").ok(), shown, "the page is loaded again");
    assert_eq!(browser.get("/api/v1/users").ok()["items"], json!([]));
    assert_eq!(browser.get("/metrics").status(), 200);
    assert_eq!(browser.change("POST", "/api/v1/users", &json!({ "id": 7 })).status(), 201);
    assert_eq!(browser.change("DELETE", "/api/v1/users/7", &Json::Null).status(), 204);
    assert_eq!(metric(&admin, "rollcall_site_sessions"), 1.0);

    let gone = browser.change("DELETE", "/session", &Json::Null);
    assert_eq!(gone.status(), 204);
    assert!(gone.reply.header("set-cookie").unwrap().starts_with("rollcall_session=; "));
    // Who stole the cookie has nothing.
    for target in ["/session", "/api/v1/users", "/metrics"] {
        assert_eq!(problem(&browser.get(target), 401), "unauthorized", "{target}");
    }
    assert_eq!(browser.change("POST", "/api/v1/users", &json!({ "id": 8 })).status(), 401);
    let trail = admin.get("/api/v1/audit?action=session.").ok();
    let told: Vec<_> = items(&trail)
        .iter()
        .map(|record| {
            (record["action"].clone(), record["actorId"].clone(), record["details"]["from"].clone())
        })
        .collect();
    let actor = json!(format!("key:{id}"));
    let expected =
        ["session.end", "session.begin"].map(|name| (json!(name), actor.clone(), json!("127.0.0.1")));
    assert_eq!(told, expected);
    let changed = admin.get("/api/v1/audit?action=user.add").ok();
    assert_eq!(items(&changed)[0]["actorId"], actor, "what is done in a session is done by its key");
    for (sample, expected) in [
        ("rollcall_site_sign_ins_total", 1.0),
        ("rollcall_site_sign_outs_total", 1.0),
        ("rollcall_site_sessions", 0.0),
        ("rollcall_site_csrf_refused_total", 0.0),
    ] {
        assert_eq!(metric(&admin, sample), expected, "{sample}");
    }
    let (log, secret) = (server.log(), browser.cookie.split_once('=').unwrap().1);
    for told in [secret, &browser.csrf, admin.key().unwrap()] {
        assert!(!log.contains(told), "the log tells a secret");
        assert!(!trail.to_string().contains(told), "the trail tells a secret");
    }
}

#[test]
fn a_page_of_another_site_can_do_nothing_with_the_cookie() {
    let server = builder().start();
    let (_, admin) = key(&server, "admin");
    let victim = Browser::sign_in(&server, admin.key().unwrap());
    let attacker = Browser::sign_in(&server, admin.key().unwrap());
    assert_ne!(victim.csrf, attacker.csrf);
    let almost = format!("{}x", &victim.csrf[..victim.csrf.len() - 1]);
    let secret = victim.cookie.split_once('=').unwrap().1.to_owned();
    let tries: Vec<Vec<(&str, &str)>> = vec![
        vec![],
        vec![("x-csrf-token", "")],
        vec![("x-csrf-token", "nonsense")],
        vec![("x-csrf-token", &almost)],
        vec![("x-csrf-token", &attacker.csrf)],
        vec![("x-csrf-token", &secret)],
        vec![("x-csrf-token", &victim.csrf), ("x-csrf-token", &attacker.csrf)],
    ];
    let mut refused = 0.0;
    for headers in &tries {
        for (method, target) in [
            ("POST", "/api/v1/users"),
            ("PUT", "/api/v1/clients/-XX"),
            ("DELETE", "/api/v1/users/1"),
            ("DELETE", "/session"),
        ] {
            let mut headers = headers.clone();
            // The kinds of bodies that a form can send, too.
            headers.push(("content-type", if method == "POST" { "text/plain" } else { "application/json" }));
            let reply = victim.send(method, target, &headers);
            assert_eq!(problem(&reply, 403), "csrf", "{method} {target} with {headers:?}");
            refused += 1.0;
        }
    }
    assert_eq!(metric(&admin, "rollcall_site_csrf_refused_total"), refused);
    assert_eq!(victim.get("/api/v1/users").ok()["items"], json!([]), "and the session goes on");
    // A planted cookie beside the real one does not sign in as another operator.
    let both = format!("{}; {}", attacker.cookie, victim.cookie);
    assert_eq!(server.anonymous_api().send("GET", "/session", &[("cookie", &both)], None).status(), 401);
}

#[test]
fn only_pages_of_this_server_may_sign_in() {
    let server = builder().set("site.cors_origins", "[\"https://pt.example.com\"]").start();
    let (_, admin) = key(&server, "admin");
    let own = format!("http://{}", server.site_addr());
    let status = |more: &[(&str, &str)]| sign_in(&server, admin.key().unwrap(), more).status();
    assert_eq!(status(&[("origin", &own)]), 200);
    assert_eq!(status(&[("origin", &own), ("sec-fetch-site", "same-origin")]), 200);
    for foreign in [
        &[("origin", "https://evil.example.com")][..],
        &[("origin", "https://pt.example.com")],
        &[("origin", "null")],
        &[("origin", &own), ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
    ] {
        let reply = sign_in(&server, admin.key().unwrap(), foreign);
        assert_eq!(problem(&reply, 403), "cross_site", "{foreign:?}");
        assert_eq!(reply.reply.header("set-cookie"), None);
    }
    assert_eq!(metric(&admin, "rollcall_site_sign_ins_refused_total{reason=\"cross_site\"}"), 5.0);
    // What a form can send is no sign-in.
    let body = json!({ "key": admin.key() }).to_string();
    let form = server.anonymous_api().send(
        "POST",
        "/session",
        &[("content-type", "text/plain")],
        Some(body.as_bytes()),
    );
    assert_eq!(problem(&form, 415), "bad_body");
}

#[test]
fn a_session_is_worth_what_its_key_is_worth_and_ends_with_it() {
    let mut server = builder().start();
    let (reader_id, reader) = key(&server, "read");
    let (_, admin) = key(&server, "admin");
    let (_, verifier) = key(&server, "verify");
    assert_eq!(problem(&sign_in(&server, verifier.key().unwrap(), &[]), 403), "forbidden");
    let browser = Browser::sign_in(&server, reader.key().unwrap());
    assert_eq!(browser.get("/api/v1/users").status(), 200);
    let refused = browser.change("POST", "/api/v1/users", &json!({ "id": 7 }));
    assert_eq!(problem(&refused, 403), "forbidden");
    assert_eq!(problem(&browser.get("/api/v1/audit"), 403), "forbidden");
    // Who sends a key is judged by it alone.
    let beside = |key: &str| browser.send("GET", "/api/v1/users", &[("x-api-key", key)]).status();
    assert_eq!(beside("rck_00000000_0000000000000000000000000000000000000000"), 401);
    assert_eq!((beside(""), beside(admin.key().unwrap())), (401, 200));
    let chief = Browser::sign_in(&server, admin.key().unwrap());
    let as_reader = chief.send("GET", "/api/v1/audit", &[("x-api-key", reader.key().unwrap())]);
    assert_eq!(problem(&as_reader, 403), "forbidden");
    // A restart ends no session.
    assert!(server.stop().success());
    server.start_again();
    assert_eq!(browser.get("/session").status(), 200);
    // By the command here; by the API below.
    server.cli(&["key", "revoke", &reader_id]);
    eventually("the session to end with its key", PATIENCE, || {
        (browser.get("/api/v1/users").status() == 401).then_some(())
    });
    assert_eq!(problem(&browser.get("/session"), 401), "unauthorized");
    assert_eq!(chief.get("/session").status(), 200, "others go on");
}

#[test]
fn a_session_ends_at_its_time() {
    let server = builder().start();
    let (id, _) = key(&server, "admin");
    let database = format!("sqlite:{}", server.data_folder().join("rollcall.db").display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let begin = |now: UnixTime, length| {
        runtime.block_on(async {
            let store = Store::open(&database).await.unwrap();
            let (secret, _) =
                Sessions::on(store.database()).begin(id.parse().unwrap(), now, length).await.unwrap();
            store.close().await;
            format!("rollcall_session={}", secret.text())
        })
    };
    let status = |cookie: &str| {
        server.anonymous_api().send("GET", "/api/v1/users", &[("cookie", cookie)], None).status()
    };
    let now = SystemClock.now();
    assert_eq!(status(&begin(now, Seconds(3600))), 200, "another process has signed in");
    assert_eq!(status(&begin(UnixTime(now.0 - 3600), Seconds(3600))), 401);
    let short = begin(now, Seconds(3));
    status(&short);
    eventually("it to end while it is known", PATIENCE, || (status(&short) == 401).then_some(()));
}

#[test]
fn wrong_keys_lock_out_only_their_address_for_a_while() {
    let server = builder().set("site.trusted_proxies", "[\"127.0.0.1/32\"]").start();
    let (_, admin) = key(&server, "admin");
    let wrong = "rck_00000000_0000000000000000000000000000000000000000";
    let guess = |from: &str, key: &str| sign_in(&server, key, &[("x-forwarded-for", from)]);
    // Right ones are not counted.
    for _ in 0..10 {
        assert_eq!(guess("192.0.2.1", admin.key().unwrap()).status(), 200);
    }
    for _ in 0..5 {
        assert_eq!(problem(&guess("192.0.2.1", wrong), 401), "unauthorized");
    }
    for key in [wrong, admin.key().unwrap()] {
        let limited = guess("192.0.2.1", key);
        assert_eq!(problem(&limited, 429), "too_many_requests");
        let wait: u64 = limited.reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=12).contains(&wait), "{wait}");
    }
    assert_eq!(guess("192.0.2.2", admin.key().unwrap()).status(), 200, "another address");
    // Neighbours in an IPv6 network are one.
    let statuses: Vec<u16> = (1..=7).map(|n| guess(&format!("2001:db8::{n}"), wrong).status()).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429]);
    assert_eq!(admin.get("/api/v1/users").status(), 200);
    for (sample, expected) in [
        ("rollcall_site_sign_ins_total", 11.0),
        ("rollcall_site_sign_ins_refused_total{reason=\"wrong_key\"}", 10.0),
        ("rollcall_site_sign_ins_refused_total{reason=\"too_many\"}", 4.0),
        ("rollcall_site_rate_limited_total{by=\"wrong_key\"}", 4.0),
    ] {
        assert_eq!(metric(&admin, sample), expected, "{sample}");
    }
    assert!(!server.log().contains(wrong), "the log tells what was tried");
}

#[test]
fn over_https_the_cookie_never_leaves_it() {
    let server = builder().set("site.trusted_proxies", "[\"127.0.0.1/32\"]").start();
    let (_, admin) = key(&server, "admin");
    let set = |more: &[(&str, &str)]| {
        let reply = sign_in(&server, admin.key().unwrap(), more);
        reply.reply.header("set-cookie").unwrap().ends_with("; Secure")
    };
    assert!(set(&[("x-forwarded-proto", "https")]));
    assert!(set(&[("forwarded", "for=192.0.2.1;proto=https")]));
    assert!(!set(&[("x-forwarded-proto", "http")]) && !set(&[]));
    let authority = Authority::new();
    authority.install();
    let secure = builder()
        .set("site.tls_cert_file", quoted(&authority.certificate_path().display().to_string()))
        .set("site.tls_key_file", quoted(&authority.key_path().display().to_string()))
        .start();
    let made = secure.cli(&["key", "create", "--name", "a", "--scope", "admin"]);
    let body = json!({ "key": made["key"] }).to_string();
    let cookie = eventually("the key to work", PATIENCE, || {
        let mut connection = authority.connect(secure.site_addr()).unwrap();
        let head = format!(
            "POST /session HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.send(head.as_bytes());
        connection.read_reply().header("set-cookie").map(str::to_owned)
    });
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}
