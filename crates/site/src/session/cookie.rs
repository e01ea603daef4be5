//! The cookie that says who is signed in.

use access::SessionSecret;
use domain::Seconds;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Its name where it came over plain HTTP.
pub const NAME: &str = "rollcall_session";
/// Its name over HTTPS. Browsers take a cookie of such a name from this very host alone: no neighbouring site can plant it.
pub const HOST_NAME: &str = "__Host-rollcall_session";

/// The secret that the browser sent; that of the name which nobody can plant, if there is one. Two different ones are none:
/// a page of a neighbouring site may have planted one.
pub fn read(headers: &HeaderMap) -> Option<SessionSecret> {
    let text = sent(headers, HOST_NAME).or_else(|| sent(headers, NAME))??;
    SessionSecret::read(text)
}

/// What was sent under a name: nothing, or several that differ, or one.
fn sent<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<Option<&'h str>> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut sent = pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value);
    let first = sent.next()?;
    Some(sent.all(|other| other == first).then_some(first))
}

/// What tells a browser to keep it.
pub fn set(secret: &SessionSecret, length: Seconds, secure: bool) -> HeaderValue {
    header(if secure { HOST_NAME } else { NAME }, secret.text(), length.0, secure)
}

/// What tells a browser to forget it, under each name that it may have.
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
    fn the_one_secret_is_found_among_other_cookies_and_two_that_differ_are_none() {
        let (one, two) = ("a".repeat(43), "b".repeat(43));
        assert_eq!(read_from(&[&format!("x=1; rollcall_session={one};y=2")]).as_ref(), Some(&one));
        assert_eq!(read_from(&["x=1", &format!("rollcall_session={one}")]).as_ref(), Some(&one));
        let twice = format!("rollcall_session={one}; rollcall_session={one}");
        assert_eq!(read_from(&[&twice]).as_ref(), Some(&one));
        let planted = format!("rollcall_session={one}; rollcall_session={two}");
        assert_eq!(read_from(&[&planted]), None);
        let ours = format!("rollcall_session={two}; __Host-rollcall_session={one}");
        assert_eq!(read_from(&[&ours]).as_ref(), Some(&one), "a neighbour can plant the other name only");
        let unclear = format!("__Host-rollcall_session={two}; {ours}");
        assert_eq!(read_from(&[&unclear]), None);
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
        assert_eq!(set(&secret, Seconds(60), true), format!("__Host-{expected}; Secure").as_str());
        let gone = "rollcall_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
        assert_eq!(removed(false), [gone]);
        assert_eq!(removed(true), [format!("__Host-{gone}; Secure"), format!("{gone}; Secure")]);
    }
}
