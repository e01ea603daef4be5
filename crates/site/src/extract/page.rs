//! Page parameters: limit and cursor.
//!
//! A cursor is a position in a collection, opaque to callers. Its pattern is part of the OpenAPI description: text that
//! matches is accepted, other text is refused.

use std::marker::PhantomData;

use domain::{TorrentId, UserId};
use journal::EntryId;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Required, Type};
use views::Cursor;

use crate::problem::Problem;

/// Default number of items on a page.
pub const LIMIT_DEFAULT: u32 = 100;
/// Maximum number of items on a page.
pub const LIMIT_MAX: u32 = 1000;
/// Maximum length of a cursor.
const CURSOR_CHARS_MAX: usize = 200;

/// A position in a collection.
pub trait PageCursor: Sized {
    /// Regular expression of valid cursors.
    const PATTERN: &'static str;

    /// None if malformed.
    fn parse(text: &str) -> Option<Self>;
}

/// Parses a decimal number without leading zeros.
pub fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Maximum id. A cursor beyond it yields an empty page.
const NUMBER_MAX: u64 = i64::MAX as u64;

impl PageCursor for UserId {
    const PATTERN: &'static str = "^[1-9][0-9]{0,18}$";

    fn parse(text: &str) -> Option<UserId> {
        UserId::new(plain_number(text)?.min(NUMBER_MAX))
    }
}

impl PageCursor for TorrentId {
    const PATTERN: &'static str = <UserId as PageCursor>::PATTERN;

    fn parse(text: &str) -> Option<TorrentId> {
        TorrentId::new(plain_number(text)?.min(NUMBER_MAX))
    }
}

impl PageCursor for EntryId {
    const PATTERN: &'static str = "^[0-9]{1,19}-[0-9]{1,19}$";

    fn parse(text: &str) -> Option<EntryId> {
        text.parse().ok()
    }
}

impl PageCursor for Cursor {
    // Times before the year 2096 fit into 32 bits.
    const PATTERN: &'static str = "^[0-3]?[0-9]{1,9}-[0-9a-f]{40}$";

    fn parse(text: &str) -> Option<Cursor> {
        text.parse().ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Asc,
    Desc,
}

/// Query parameters of a page with cursors `P`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct PageParams<P> {
    limit: Option<u32>,
    cursor: Option<String>,
    #[serde(skip)]
    marker: PhantomData<P>,
}

impl<P: PageCursor> PageParams<P> {
    pub fn of(limit: Option<u32>, cursor: Option<String>) -> PageParams<P> {
        PageParams { limit, cursor, marker: PhantomData }
    }

    pub fn limit(&self) -> Result<u32, Problem> {
        page_limit(self.limit.unwrap_or(LIMIT_DEFAULT))
    }

    /// None for the first page.
    pub fn cursor(&self) -> Result<Option<P>, Problem> {
        let Some(text) = &self.cursor else { return Ok(None) };
        let cursor = Some(text.as_str()).filter(|text| text.len() <= CURSOR_CHARS_MAX).and_then(P::parse);
        cursor.map(Some).ok_or_else(|| {
            Problem::bad_request("malformed cursor: send `next` of the previous page, or omit it")
        })
    }
}

impl<P: PageCursor> IntoParams for PageParams<P> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(LIMIT_MAX))
            .default(Some(LIMIT_DEFAULT.into()));
        let cursor = ObjectBuilder::new().schema_type(Type::String).pattern(Some(P::PATTERN));
        vec![
            query_parameter("limit", "Maximum number of items.", limit),
            query_parameter("cursor", "`next` of the previous page.", cursor),
        ]
    }
}

/// An optional query parameter for the OpenAPI description.
pub fn query_parameter(name: &str, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema.build()))
        .build()
}

pub fn page_limit(limit: u32) -> Result<u32, Problem> {
    match limit {
        1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::bad_request(format!("limit is {limit}: it must be from 1 to {LIMIT_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_valid_cursors_and_other_text_is_refused() {
        for (text, number) in [("1", 1), ("42", 42), ("9999999999999999999", NUMBER_MAX)] {
            assert_eq!(<UserId as PageCursor>::parse(text).map(UserId::get), Some(number));
        }
        for text in ["", "0", "07", "+7", "-7", "7 ", "1e3", "99999999999999999999"] {
            assert!(<UserId as PageCursor>::parse(text).is_none(), "{text}");
        }
    }
}
