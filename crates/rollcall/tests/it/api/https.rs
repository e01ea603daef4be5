//! The site over HTTPS: certificates from files, renewed while it runs; what is not TLS.

use testkit::{Authority, HttpReply, RawHttp, Server, ServerBuilder, eventually, eventually_equal};

use crate::api::{PATIENCE, builder, quoted};

fn secure(authority: &Authority) -> ServerBuilder {
    builder()
        .set("site.tls_cert_file", quoted(&authority.certificate_path().display().to_string()))
        .set("site.tls_key_file", quoted(&authority.key_path().display().to_string()))
        .set("site.metrics_open", true)
}

fn get(authority: &Authority, server: &Server, target: &str) -> HttpReply {
    authority.connect(server.site_addr()).unwrap().get(target)
}

fn refused(authority: &Authority, server: &Server, reason: &str) -> f64 {
    let page = String::from_utf8(get(authority, server, "/metrics").body).unwrap();
    let sample = format!("rollcall_site_connections_refused_total{{reason=\"{reason}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&sample)?.parse().ok()).unwrap_or(0.0)
}

#[test]
fn the_site_serves_https_and_reloads_its_certificate() {
    let authority = Authority::new();
    let first = authority.install();
    let server = secure(&authority).start();
    let mut earlier = authority.connect(server.site_addr()).unwrap();
    assert_eq!(earlier.get("/healthz").status(), 200);
    assert_eq!(get(&authority, &server, "/api/v1/users").status(), 401);
    assert_eq!(authority.shown_by(server.site_addr()).unwrap(), first);
    assert!(Authority::new().connect(server.site_addr()).is_err(), "who trusts another does not talk");
    eventually("the startup message", PATIENCE, || server.log().contains("https://127.0.0.1:").then_some(()));

    // By a signal at once; by itself within seconds.
    let second = authority.install();
    server.reload();
    eventually_equal(second, PATIENCE, || authority.shown_by(server.site_addr()).unwrap());
    let third = authority.install();
    eventually_equal(third.clone(), PATIENCE, || authority.shown_by(server.site_addr()).unwrap());
    assert_eq!(earlier.get("/healthz").status(), 200, "open connections go on");

    // A file that is none changes nothing.
    std::fs::write(authority.certificate_path(), "nonsense").unwrap();
    server.reload();
    eventually("a complaint in the log", PATIENCE, || server.log().contains("certificate").then_some(()));
    assert_eq!(authority.shown_by(server.site_addr()).unwrap(), third);
}

#[test]
fn hsts_is_sent_over_https_only() {
    let authority = Authority::new();
    authority.install();
    let header = |reply: &HttpReply| reply.header("strict-transport-security").map(str::to_owned);
    let server = secure(&authority).start();
    for target in ["/", "/healthz", "/api/v1/users", "/no/such/path"] {
        assert_eq!(
            header(&get(&authority, &server, target)).as_deref(),
            Some("max-age=31536000"),
            "{target}"
        );
    }
    let plain = builder().set("site.trusted_proxies", "[\"127.0.0.1/32\"]").start();
    let ask = |more: &str| {
        let request = format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{more}connection: close\r\n\r\n");
        header(&crate::api::exchange(plain.site_addr(), request.as_bytes()))
    };
    assert_eq!(ask(""), None);
    assert_eq!(ask("origin: https://x\r\n"), None, "a page's word is not enough");
    assert_eq!(ask("x-forwarded-proto: https\r\n").as_deref(), Some("max-age=31536000"));
    let untrusting = builder().start();
    let request =
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-forwarded-proto: https\r\nconnection: close\r\n\r\n";
    assert_eq!(header(&crate::api::exchange(untrusting.site_addr(), request)), None);
}

#[test]
fn what_is_not_tls_or_too_slow_for_it_is_cut_off_and_counted() {
    let authority = Authority::new();
    authority.install();
    let server = secure(&authority).set("limits.header_timeout_s", 1).start();
    let (failed, slow) =
        (refused(&authority, &server, "handshake_failed"), refused(&authority, &server, "handshake_slow"));
    let mut plain = RawHttp::connect(server.site_addr());
    plain.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    let reply = plain.read_to_close();
    assert!(!reply.starts_with(b"HTTP"), "{reply:?}");
    let mut silent = RawHttp::connect(server.site_addr());
    let mut begun = RawHttp::connect(server.site_addr());
    begun.send(b"\x16\x03\x01\x02\x00\x01");
    silent.read_to_close();
    begun.read_to_close();
    eventually_equal((failed + 1.0, slow + 2.0), PATIENCE, || {
        (refused(&authority, &server, "handshake_failed"), refused(&authority, &server, "handshake_slow"))
    });
    let mut head = authority.connect(server.site_addr()).unwrap();
    head.send(b"GET /healthz HTTP/1.1\r\n");
    eventually("the slow head to be counted", PATIENCE, || {
        (refused(&authority, &server, "slow_head") >= 1.0).then_some(())
    });
}

/// `rollcall ping` needs no trusted certificate.
#[test]
fn ping_finds_a_server_with_https() {
    let authority = Authority::new();
    authority.install();
    let server = secure(&authority).start();
    assert_eq!(server.cli(&["ping"])["alive"], true);
}
