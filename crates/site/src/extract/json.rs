//! Stricter and laxer than serde: an array is not accepted as an object, and `5.0` is the integer 5.

use std::fmt;
use std::marker::PhantomData;

use access::{LeechSlots, UserName};
use domain::{Passkey, UserId};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

/// An object. Serde would also accept an array of its values.
pub(super) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Integers up to 2^53 are exact in a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// For fields with an unsigned integer or null: `#[serde(default, deserialize_with = "whole")]`.
pub fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let body = Option::<Whole>::deserialize(deserializer)?;
    body.map(|Whole(number)| T::try_from(number).map_err(|_| D::Error::custom("the number is too large")))
        .transpose()
}

struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, not below zero")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
        if number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number) {
            return Ok(Whole(number as u64));
        }
        Err(E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

/// For optional leech slots: `#[serde(default, deserialize_with = "slots")]`. Null is a value.
pub fn slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LeechSlots>, D::Error> {
    let number = deserializer.deserialize_any(SlotsVisitor)?;
    LeechSlots::from_number(number).map(Some).map_err(|_| {
        D::Error::custom(format!(
            "slots are an integer from 0 to {}, -1 for unlimited, or null for the default",
            LeechSlots::MAX
        ))
    })
}

/// For an optional display name: `#[serde(default, deserialize_with = "user_name")]`. Null and the empty string remove it.
pub fn user_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<UserName>>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(Some(None)),
        Some(text) => text.parse().map(|name| Some(Some(name))).map_err(D::Error::custom),
    }
}

struct SlotsVisitor;

impl Visitor<'_> for SlotsVisitor {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<i64>, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<i64>, E> {
        Ok(Some(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<i64>, E> {
        Ok(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<i64>, E> {
        if number.fract() == 0.0 && (-EXACT_MAX..=EXACT_MAX).contains(&number) {
            return Ok(Some(number as i64));
        }
        Err(E::invalid_type(serde::de::Unexpected::Float(number), &self))
    }
}

/// A user id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(as = UserId, value_type = u64, minimum = 1, maximum = 9223372036854775807_u64)]
pub struct UserIdJson(pub UserId);

impl<'de> Deserialize<'de> for UserIdJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Whole(number) = Whole::deserialize(deserializer)?;
        let user = UserId::new(number);
        user.map(UserIdJson)
            .ok_or_else(|| D::Error::custom("a user id is an integer from 1 to 9223372036854775807"))
    }
}

/// 8 to 64 hexadecimal digits; case is ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = Passkey, min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
pub struct PasskeyText(pub String);

impl PasskeyText {
    pub fn read(&self) -> Result<Passkey, domain::IdError> {
        self.0.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Thing {
        #[serde(default, deserialize_with = "whole")]
        number: Option<u32>,
    }

    #[derive(Debug, Deserialize)]
    struct Limited {
        #[serde(default, deserialize_with = "slots")]
        slots: Option<LeechSlots>,
    }

    #[test]
    fn omitted_slots_differ_from_null() {
        let read = |text: &str| serde_json::from_str::<Object<Limited>>(text).map(|Object(body)| body.slots);
        assert_eq!(read("{}").unwrap(), None);
        assert_eq!(read(r#"{"slots": null}"#).unwrap(), Some(LeechSlots::DEFAULT));
        assert_eq!(read(r#"{"slots": -1.0}"#).unwrap(), Some(LeechSlots::UNLIMITED));
        assert_eq!(read(r#"{"slots": 3}"#).unwrap(), LeechSlots::at_most(3));
        for text in [r#"{"slots": -2}"#, r#"{"slots": 1000001}"#, r#"{"slots": "3"}"#, r#"{"slots": 1.5}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    fn read(text: &str) -> Result<Option<u32>, String> {
        let read = serde_json::from_str::<Object<Thing>>(text);
        read.map(|Object(thing)| thing.number).map_err(|error| error.to_string())
    }

    #[test]
    fn an_integer_may_have_a_decimal_point_and_an_array_is_not_an_object() {
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"number": null}"#), Ok(None));
        assert_eq!(read(r#"{"number": 5}"#), Ok(Some(5)));
        assert_eq!(read(r#"{"number": 5.0}"#), Ok(Some(5)));
        assert_eq!(read(r#"{"number": 1e3}"#), Ok(Some(1000)));
        for text in ["[5]", "5", r#"{"number": -1}"#, r#"{"number": 5.5}"#, r#"{"number": "5"}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(r#"{"number": 4294967296}"#).unwrap_err().contains("too large"));
        assert!(read(r#"{"number": 1, "number": 2}"#).unwrap_err().contains("duplicate"));
    }
}
