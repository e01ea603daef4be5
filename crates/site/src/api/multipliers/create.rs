//! Request body of a new multiplier.

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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateMultiplier {
    /// `site`, `torrent` or `user`.
    #[schema(example = "torrent", pattern = "^(site|torrent|user)$")]
    scope: String,
    /// Torrent or user id; omitted for the site.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    subject: Option<u64>,
    /// Share of uploaded bytes that is credited.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 10000, default = 100)]
    upload_percent: Option<u32>,
    /// Share of downloaded bytes that is credited. 0 is freeleech.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 10000, default = 100)]
    download_percent: Option<u32>,
    /// Default: now.
    #[serde(default, deserialize_with = "whole")]
    #[schema(format = Int64, minimum = 0, maximum = 4294967295_u64)]
    starts_at: Option<u32>,
    /// Default: until it is removed.
    #[serde(default, deserialize_with = "whole")]
    #[schema(format = Int64, minimum = 0, maximum = 4294967295_u64)]
    ends_at: Option<u32>,
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\x00]*$")]
    note: String,
}

impl CreateMultiplier {
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
                    "scope must be \"site\", or \"torrent\" or \"user\" with its id as subject",
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

/// OpenAPI schema of [`CreateMultiplier`], written by hand: `subject` is required unless the scope is the site.
pub(super) enum CreateMultiplierSchema {}

impl ToSchema for CreateMultiplierSchema {
    fn name() -> Cow<'static, str> {
        "CreateMultiplier".into()
    }
}

impl PartialSchema for CreateMultiplierSchema {
    fn schema() -> RefOr<Schema> {
        let subject = || ObjectBuilder::new().description(Some("Torrent or user id."));
        let one = subject().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(i64::MAX));
        let none = subject()
            .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
            .enum_values(Some([Json::from(0), Json::Null]));
        let site = form("For the site", &["site"], none.build());
        let mut others = form("For a torrent or a user", &["torrent", "user"], one.build());
        others.required.push("subject".to_owned());
        let description = "`ends_at` must be after `starts_at`.";
        let forms = OneOfBuilder::new().item(site).item(others).description(Some(description));
        Schema::OneOf(forms.build()).into()
    }
}

/// The derived fields with these scopes and this subject.
fn form(title: &str, scopes: &[&str], subject: Object) -> Object {
    let RefOr::T(Schema::Object(mut fields)) = CreateMultiplier::schema() else { return Object::new() };
    let scope = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(scopes.iter().map(|scope| (*scope).to_owned())))
        .description(Some("What it applies to."));
    fields.title = Some(title.to_owned());
    fields.properties.insert("scope".to_owned(), scope.build().into());
    fields.properties.insert("subject".to_owned(), subject.into());
    fields
}
