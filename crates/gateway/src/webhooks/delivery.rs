//! A delivery: its body, signature and headers.

use aws_lc_rs::hmac;
use domain::named;
use domain::{UserId, hex};
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use hyper::body::Bytes;
use presence::{Cause, DeviceId};
use serde::Serialize;

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Event {
        Arrived = "arrived",
        Left = "left",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub place: u64,
    pub user: UserId,
    pub at_ms: u64,
    pub event: Event,
    pub cause: Option<Cause>,
    pub device: Option<DeviceId>,
}

#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    event: &'static str,
    user: u64,
    at: u64,
    at_ms: u64,
    cause: Option<&'static str>,
    device: Option<&'a str>,
}

impl Delivery {
    /// The same for every attempt, so that receivers can detect repetitions; unique for every event, also when a
    /// database is recreated.
    pub(super) fn delivery_id(&self) -> String {
        format!("{}-{}", self.at_ms, self.place)
    }

    fn body(&self) -> String {
        let body = Body {
            id: &self.delivery_id(),
            event: self.event.name(),
            user: self.user.get(),
            at: self.at_ms / 1000,
            at_ms: self.at_ms,
            cause: self.cause.map(Cause::name),
            device: self.device.as_ref().map(DeviceId::as_str),
        };
        serde_json::to_string(&body).expect("texts and numbers can be written as JSON")
    }

    /// Signed if there is a key.
    pub(super) fn request(
        &self,
        url: &Uri,
        key: Option<&hmac::Key>,
        attempt: u32,
        now_s: u64,
    ) -> http::Result<Request<Full<Bytes>>> {
        let body = self.body();
        let mut request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("rollcall/", env!("CARGO_PKG_VERSION")))
            .header("rollcall-delivery", self.delivery_id())
            .header("rollcall-event", self.event.name())
            .header("rollcall-attempt", attempt);
        if let Some(key) = key {
            let mut signature = HeaderValue::try_from(sign(key, now_s, &body))?;
            signature.set_sensitive(true);
            request = request.header("rollcall-signature", signature);
        }
        request.body(Full::from(body))
    }
}

/// `t=<unix>,v1=<hex of HMAC-SHA256 over "t.body">`: the time is signed, so that receivers can refuse old requests.
fn sign(key: &hmac::Key, now_s: u64, body: &str) -> String {
    let tag = hmac::sign(key, format!("{now_s}.{body}").as_bytes());
    format!("t={now_s},v1={}", hex::encode(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Delivery {
        Delivery {
            place: 12,
            user: UserId::new(7).unwrap(),
            at_ms: 1_789_000_000_123,
            event: Event::Arrived,
            cause: Some(Cause::Connect),
            device: DeviceId::new("a\"phone"),
        }
    }

    #[test]
    fn the_body_is_json_and_the_same_each_time() {
        assert_eq!(
            delivery().body(),
            r#"{"id":"1789000000123-12","event":"arrived","user":7,"at":1789000000,"at_ms":1789000000123,"cause":"connect","device":"a\"phone"}"#
        );
        assert_eq!(delivery().body(), delivery().body());
    }

    /// Compared with `printf '1789000001.{"a":1}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn the_signature_is_what_other_programs_compute() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        assert_eq!(
            sign(&key, 1_789_000_001, r#"{"a":1}"#),
            "t=1789000001,v1=3f74dff8fec80e7f15a38eb3bb349564e9c59384d0b7de6535cd8a69a2ace56c"
        );
    }

    #[test]
    fn without_a_secret_nothing_is_signed() {
        let request = delivery().request(&Uri::from_static("http://127.0.0.1/x"), None, 1, 5).unwrap();
        assert!(request.headers().get("rollcall-signature").is_none());
        assert_eq!(request.headers()["rollcall-delivery"], "1789000000123-12");
    }
}
