//! The session cookie.

use admin::SessionSecret;
use domain::Seconds;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Name over plain HTTP.
pub const NAME: &str = "rollcall_session";
/// Name over HTTPS. Browsers accept the prefix only from this host, so that no other host of the domain can set it.
pub const HOST_NAME: &str = "__Host-rollcall_session";

/// The secret; the `__Host-` name takes precedence. Two different values are refused: another host of the domain may have
/// set one.
pub fn read(headers: &HeaderMap) -> Option<SessionSecret> {
    let text = sent(headers, HOST_NAME).or_else(|| sent(headers, NAME))??;
    SessionSecret::read(text)
}

/// None if the cookie is absent; `Some(None)` if several values differ.
fn sent<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<Option<&'h str>> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut sent = pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value);
    let first = sent.next()?;
    Some(sent.all(|other| other == first).then_some(first))
}

/// `Set-Cookie` of a new session.
pub fn set(secret: &SessionSecret, length: Seconds, secure: bool) -> HeaderValue {
    header(if secure { HOST_NAME } else { NAME }, secret.text(), length.0, secure)
}

/// `Set-Cookie` headers that remove it, under both names.
pub fn removed(secure: bool) -> Vec<HeaderValue> {
    let names: &[&str] = if secure { &[HOST_NAME, NAME] } else { &[NAME] };
    names.iter().map(|name| header(name, "", 0, secure)).collect()
}

fn header(name: &str, value: &str, max_age_s: u32, secure: bool) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={max_age_s}{secure}");
    HeaderValue::from_str(&text).expect("a secret is letters, digits, - and _")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(COOKIE, line.parse().unwrap());
        }
        read(&headers).map(|secret| secret.text().to_owned())
    }

    #[test]
    fn the_secret_is_found_among_other_cookies_and_different_values_are_refused() {
        let (one, two) = ("A".repeat(43), "E".repeat(43));
        assert_eq!(read_from(&[&format!("x=1; rollcall_session={one};y=2")]).as_ref(), Some(&one));
        assert_eq!(read_from(&["x=1", &format!("rollcall_session={one}")]).as_ref(), Some(&one));
        let twice = format!("rollcall_session={one}; rollcall_session={one}");
        assert_eq!(read_from(&[&twice]).as_ref(), Some(&one));
        let conflicting = format!("rollcall_session={one}; rollcall_session={two}");
        assert_eq!(read_from(&[&conflicting]), None);
        let both = format!("rollcall_session={two}; __Host-rollcall_session={one}");
        assert_eq!(read_from(&[&both]).as_ref(), Some(&one), "another host can set the plain name only");
        let conflicting = format!("__Host-rollcall_session={two}; {both}");
        assert_eq!(read_from(&[&conflicting]), None);
        for line in
            ["", "rollcall_session", "rollcall_session=", "rollcall_session=abc", "ROLLCALL_SESSION=a"]
        {
            assert_eq!(read_from(&[line]), None, "{line:?}");
        }
    }

    #[test]
    fn the_cookie_is_http_only_and_same_site_and_secure_over_https() {
        let secret = SessionSecret::read(&"A".repeat(43)).unwrap();
        let plain = set(&secret, Seconds(60), false);
        let expected =
            format!("rollcall_session={}; HttpOnly; SameSite=Strict; Path=/; Max-Age=60", "A".repeat(43));
        assert_eq!(plain, expected.as_str());
        assert_eq!(set(&secret, Seconds(60), true), format!("__Host-{expected}; Secure").as_str());
        let removal = "rollcall_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
        assert_eq!(removed(false), [removal]);
        assert_eq!(removed(true), [format!("__Host-{removal}; Secure"), format!("{removal}; Secure")]);
    }
}
