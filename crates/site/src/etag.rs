//! Entity tags and 304 responses.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Method, StatusCode};
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// Far above the size of any page.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Collisions are negligible.
const TAG_BYTES: usize = 16;

/// Adds an `ETag` to GET responses, and answers `If-None-Match`.
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
    let is_known = known.is_some_and(|known| contains_tag(&known, &tag));
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
    format!("\"{}\"", hash_of(body))
}

/// Truncated SHA-256 in hexadecimal digits.
pub fn hash_of(body: &[u8]) -> String {
    domain::hex::encode(&Sha256::digest(body)[..TAG_BYTES])
}

/// Whether an `If-None-Match` header contains the tag.
pub fn contains_tag(header: &HeaderValue, tag: &str) -> bool {
    let Ok(listed) = header.to_str() else { return false };
    listed.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_a_list_weak_or_strong() {
        let tag = tag_of(b"body");
        let header = |text: String| HeaderValue::from_str(&text).unwrap();
        assert!(contains_tag(&header(format!("\"x\", W/{tag}")), &tag));
        assert!(contains_tag(&header("*".to_owned()), &tag));
        assert!(!contains_tag(&header(tag_of(b"other")), &tag));
    }
}
