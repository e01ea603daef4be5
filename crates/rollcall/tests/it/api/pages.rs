//! The dashboard's pages: paths, content security policy, framing.

use testkit::{HttpReply, Server};

use crate::api::builder;

fn ask(server: &Server, method: &str, target: &str, headers: &[(&str, &str)]) -> HttpReply {
    server.anonymous_api().send(method, target, headers, None).reply
}

#[test]
fn pages_load_nothing_from_other_origins_and_cannot_be_framed() {
    let server = builder().start();
    for target in ["/", "/me"] {
        let page = ask(&server, "GET", target, &[]);
        assert_eq!((page.status(), page.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert_eq!(
            page.header("content-security-policy"),
            Some(
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                 connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
            )
        );
        assert_eq!(page.header("x-frame-options"), Some("DENY"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(page.header("cache-control"), Some("no-cache"));
        let tag = page.header("etag").unwrap().to_owned();
        let again = ask(&server, "GET", target, &[("if-none-match", &tag)]);
        assert_eq!((again.status(), again.body.len(), again.header("etag")), (304, 0, Some(&*tag)));
        let head = ask_head(&server, target);
        assert!(head.starts_with("HTTP/1.1 200") && head.contains(&tag), "{head}");
        let length = format!("content-length: {}\r\n", page.body.len());
        assert!(head.contains(&length) && head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(ask(&server, "POST", target, &[]).status(), 405);
        let text = String::from_utf8(page.body).unwrap();
        assert!(!text.contains("style=") && !text.contains("<style"), "{text}");
        assert!(!text.contains("<script>") && !text.contains("javascript:"), "{text}");
    }
}

fn ask_head(server: &Server, target: &str) -> String {
    let mut connection = testkit::RawHttp::connect(server.site_addr());
    connection.send(format!("HEAD {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes());
    String::from_utf8(connection.read_to_close()).unwrap()
}

#[test]
fn a_members_page_is_framed_by_the_sites_that_are_named() {
    let server = builder()
        .set("site.embed_origins", "[\"https://pt.example.com\", \"https://forum.example.com\"]")
        .start();
    let page = ask(&server, "GET", "/me", &[]);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.ends_with("; frame-ancestors https://pt.example.com https://forum.example.com"),
        "{policy}"
    );
    assert_eq!(page.header("x-frame-options"), None);
    let operators = ask(&server, "GET", "/", &[]);
    assert_eq!(operators.header("x-frame-options"), Some("DENY"));
    assert!(operators.header("content-security-policy").unwrap().ends_with("frame-ancestors 'none'"));
}

/// With the built dashboard and without: files that a page names exist, compressed if accepted.
#[test]
fn whatever_a_page_names_is_there_and_kept_for_ever() {
    let server = builder().start();
    let page = String::from_utf8(ask(&server, "GET", "/", &[]).body).unwrap();
    let named: Vec<&str> =
        page.split('"').filter(|word| word.starts_with("/assets/") || *word == "/favicon.svg").collect();
    assert_eq!(named.is_empty(), page.contains("make web"), "{page}");
    for target in named {
        let plain = ask(&server, "GET", target, &[]);
        assert_eq!((plain.status(), plain.header("content-encoding")), (200, None), "{target}");
        assert_eq!(plain.header("vary"), Some("accept-encoding"));
        if target.starts_with("/assets/") {
            assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
        }
        let packed = ask(&server, "GET", target, &[("accept-encoding", "gzip, br")]);
        let tags = (plain.header("etag").unwrap(), packed.header("etag").unwrap());
        assert_eq!(packed.header("content-encoding").is_some(), tags.0 != tags.1, "{target}");
        assert!(packed.body.len() <= plain.body.len(), "{target}");
    }
    for target in [
        "/assets/nothing.js",
        "/assets/",
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/index.html",
    ] {
        assert_eq!(ask(&server, "GET", target, &[]).status(), 404, "{target}");
    }
}
