//! Entity tags: who asks again for what has not changed is told so, without the body.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Method, StatusCode};
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// Pages of lists are far shorter.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Enough that two bodies never share a tag.
const TAG_BYTES: usize = 16;

/// Tags what a GET was answered with.
pub async fn tag(request: Request, next: Next) -> Response {
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    let is_get = request.method() == Method::GET;
    let response = next.run(request).await;
    if !is_get || response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = match to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(error) => return Problem::internal("the answer", &error).into_response(),
    };
    let tag = tag_of(&body);
    let is_known = known.is_some_and(|known| names(&known, &tag));
    parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        parts.headers.insert(ETAG, tag);
    }
    if is_known {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(http::header::CONTENT_TYPE);
        parts.headers.remove(http::header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(body))
}

fn tag_of(body: &[u8]) -> String {
    format!("\"{}\"", digits_of(body))
}

/// What tells this body from any other.
pub fn digits_of(body: &[u8]) -> String {
    Sha256::digest(body)[..TAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a header that lists tags has this one.
pub fn names(header: &HeaderValue, tag: &str) -> bool {
    let Ok(listed) = header.to_str() else { return false };
    listed.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_among_others_weak_or_not() {
        let tag = tag_of(b"body");
        let header = |text: String| HeaderValue::from_str(&text).unwrap();
        assert!(names(&header(format!("\"x\", W/{tag}")), &tag));
        assert!(names(&header("*".to_owned()), &tag));
        assert!(!names(&header(tag_of(b"other")), &tag));
    }
}
