//! The cookie that says who is signed in.

use access::SessionSecret;
use domain::Seconds;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Its name.
pub const NAME: &str = "rollcall_session";

/// The secret that the browser sent. Two different ones are none: a page of a neighbouring site may have planted one.
pub fn read(headers: &HeaderMap) -> Option<SessionSecret> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut sent = pairs.filter(|(name, _)| *name == NAME).map(|(_, value)| value);
    let first = sent.next()?;
    sent.all(|other| other == first).then(|| SessionSecret::read(first)).flatten()
}

/// What tells a browser to keep it.
pub fn set(secret: &SessionSecret, length: Seconds, secure: bool) -> HeaderValue {
    header(secret.text(), length.0, secure)
}

/// What tells a browser to forget it.
pub fn removed(secure: bool) -> HeaderValue {
    header("", 0, secure)
}

fn header(value: &str, max_age_s: u32, secure: bool) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{NAME}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={max_age_s}{secure}");
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
    fn the_one_secret_is_found_among_other_cookies_and_two_that_differ_are_none() {
        let (one, two) = ("a".repeat(43), "b".repeat(43));
        assert_eq!(read_from(&[&format!("x=1; rollcall_session={one};y=2")]).as_ref(), Some(&one));
        assert_eq!(read_from(&["x=1", &format!("rollcall_session={one}")]).as_ref(), Some(&one));
        let twice = format!("rollcall_session={one}; rollcall_session={one}");
        assert_eq!(read_from(&[&twice]).as_ref(), Some(&one));
        let planted = format!("rollcall_session={one}; rollcall_session={two}");
        assert_eq!(read_from(&[&planted]), None);
        for line in
            ["", "rollcall_session", "rollcall_session=", "rollcall_session=abc", "ROLLCALL_SESSION=a"]
        {
            assert_eq!(read_from(&[line]), None, "{line:?}");
        }
    }

    #[test]
    fn scripts_and_other_sites_never_see_it_and_https_keeps_it_to_itself() {
        let secret = SessionSecret::read(&"a".repeat(43)).unwrap();
        let plain = set(&secret, Seconds(60), false);
        let expected =
            format!("rollcall_session={}; HttpOnly; SameSite=Strict; Path=/; Max-Age=60", "a".repeat(43));
        assert_eq!(plain, expected.as_str());
        assert_eq!(set(&secret, Seconds(60), true), format!("{expected}; Secure").as_str());
        assert_eq!(removed(false), "rollcall_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    }
}
