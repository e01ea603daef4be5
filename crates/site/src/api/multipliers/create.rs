//! A multiplier as a request says it.

use std::borrow::Cow;

use domain::UnixTime;
use ledger::{NewMultiplier, Percent, Scope};
use serde::Deserialize;
use serde_json::Value as Json;
use utoipa::openapi::schema::{Schema, SchemaType};
use utoipa::openapi::{Object, ObjectBuilder, OneOfBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::extract::whole;
use crate::problem::Problem;

/// A multiplier to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateMultiplier {
    /// What it is for: `site`, `torrent` or `user`.
    #[schema(example = "torrent", pattern = "^(site|torrent|user)$")]
    scope: String,
    /// The number of the torrent or user; left out for the site.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    subject: Option<u64>,
    /// How much of what is uploaded counts.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 10000, default = 100)]
    upload_percent: Option<u32>,
    /// How much of what is downloaded counts. 0 is freeleech.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 10000, default = 100)]
    download_percent: Option<u32>,
    /// From when on; now if left out.
    #[serde(default, deserialize_with = "whole")]
    #[schema(format = Int64, minimum = 0, maximum = 4294967295_u64)]
    starts_at: Option<u32>,
    /// Until when; until it is removed if left out.
    #[serde(default, deserialize_with = "whole")]
    #[schema(format = Int64, minimum = 0, maximum = 4294967295_u64)]
    ends_at: Option<u32>,
    /// Why.
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\x00]*$")]
    note: String,
}

impl CreateMultiplier {
    /// What it is about to be.
    pub(super) fn terms(self, now: UnixTime) -> Result<NewMultiplier, Problem> {
        let percent = |name: &str, percent: Option<u32>| {
            let percent = Percent::new(percent.unwrap_or(100));
            percent.ok_or_else(|| Problem::bad_request(format!("{name} must be from 0 to 10000")))
        };
        let subject = self.subject.unwrap_or(0);
        let scope = Scope::from_parts(&self.scope, subject).filter(|scope| scope.subject() == subject);
        if self.note.contains('\0') {
            return Err(Problem::bad_request("note must be without NUL"));
        }
        Ok(NewMultiplier {
            scope: scope.ok_or_else(|| {
                Problem::bad_request(
                    "scope must be \"site\", or \"torrent\" or \"user\" with its number as subject",
                )
            })?,
            upload: percent("upload_percent", self.upload_percent)?,
            download: percent("download_percent", self.download_percent)?,
            starts_at: self.starts_at.map_or(now, UnixTime),
            ends_at: self.ends_at.map(UnixTime),
            note: self.note,
        })
    }
}

/// [`CreateMultiplier`] as it is described: the site has no number, everything else has one. A derived description cannot
/// say that.
pub(super) enum CreateMultiplierSchema {}

impl ToSchema for CreateMultiplierSchema {
    fn name() -> Cow<'static, str> {
        "CreateMultiplier".into()
    }
}

impl PartialSchema for CreateMultiplierSchema {
    fn schema() -> RefOr<Schema> {
        let subject = || ObjectBuilder::new().description(Some("The number of the torrent or user."));
        let one = subject().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(i64::MAX));
        let none = subject()
            .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
            .enum_values(Some([Json::from(0), Json::Null]));
        let site = form("For the site", &["site"], none.build());
        let mut others = form("For a torrent or a user", &["torrent", "user"], one.build());
        others.required.push("subject".to_owned());
        let description = "A multiplier to be added. It ends after it starts.";
        let forms = OneOfBuilder::new().item(site).item(others).description(Some(description));
        Schema::OneOf(forms.build()).into()
    }
}

/// The fields as derived, with these scopes and this subject.
fn form(title: &str, scopes: &[&str], subject: Object) -> Object {
    let RefOr::T(Schema::Object(mut fields)) = CreateMultiplier::schema() else { return Object::new() };
    let scope = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(scopes.iter().map(|scope| (*scope).to_owned())))
        .description(Some("What it is for."));
    fields.title = Some(title.to_owned());
    fields.properties.insert("scope".to_owned(), scope.build().into());
    fields.properties.insert("subject".to_owned(), subject.into());
    fields
}
