//! Pages of lists: how many items, and where they begin.
//!
//! A cursor is a place in a list. Callers need not know what it says, but the description of the API does: what does
//! not look like a cursor of the list at hand is refused, and what looks like one is taken.

use std::marker::PhantomData;

use domain::{TorrentId, UserId};
use journal::EntryId;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Required, Type};
use views::Cursor;

use crate::problem::Problem;

/// Items on a page if the caller does not say how many.
pub const LIMIT_DEFAULT: u32 = 100;
/// Items on a page at the most.
pub const LIMIT_MAX: u32 = 1000;
/// The longest cursor that is looked at.
const CURSOR_CHARS_MAX: usize = 200;

/// A place in a list, as a cursor names it.
pub trait PageCursor: Sized {
    /// What its texts look like, as a regular expression.
    const PATTERN: &'static str;

    /// Reads one; none if it is not one of ours.
    fn parse(text: &str) -> Option<Self>;
}

/// A number without leading zeros. Every text of up to 19 digits is one.
pub fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    is_plain.then(|| text.parse().ok()).flatten()
}

/// The largest number that a user or torrent can have. Behind it there is nothing, and an empty page says so.
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
    // Times before the year 2096, of which all fit their 32 bits.
    const PATTERN: &'static str = "^[0-3]?[0-9]{1,9}-[0-9a-f]{40}$";

    fn parse(text: &str) -> Option<Cursor> {
        text.parse().ok()
    }
}

/// Which page of a list whose places are `P`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct PageParams<P> {
    limit: Option<u32>,
    cursor: Option<String>,
    #[serde(skip)]
    place: PhantomData<P>,
}

impl<P: PageCursor> PageParams<P> {
    /// What was asked along with other things.
    pub fn of(limit: Option<u32>, cursor: Option<String>) -> PageParams<P> {
        PageParams { limit, cursor, place: PhantomData }
    }

    /// How many items.
    pub fn limit(&self) -> Result<u32, Problem> {
        page_limit(self.limit.unwrap_or(LIMIT_DEFAULT))
    }

    /// Where the page begins; none for the first one.
    pub fn cursor(&self) -> Result<Option<P>, Problem> {
        let Some(text) = &self.cursor else { return Ok(None) };
        let place = Some(text.as_str()).filter(|text| text.len() <= CURSOR_CHARS_MAX).and_then(P::parse);
        place.map(Some).ok_or_else(|| {
            Problem::bad_request("cursor is not one of ours: send next of the page before, or leave it out")
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
            query_parameter("limit", "How many items, at the most.", limit),
            query_parameter("cursor", "`next` of the page before; left out for the first page.", cursor),
        ]
    }
}

/// A parameter behind the question mark that may be left out, as the description has it.
pub fn query_parameter(name: &str, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema.build()))
        .build()
}

/// How many items a page may have.
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
    fn whatever_looks_like_a_number_is_a_place_and_nothing_else_is() {
        for (text, number) in [("1", 1), ("42", 42), ("9999999999999999999", NUMBER_MAX)] {
            assert_eq!(<UserId as PageCursor>::parse(text).map(UserId::get), Some(number));
        }
        for text in ["", "0", "07", "+7", "-7", "7 ", "1e3", "99999999999999999999"] {
            assert!(<UserId as PageCursor>::parse(text).is_none(), "{text}");
        }
    }
}
