//! The entries that a request selects.

use std::borrow::Cow;

use admin::audit::Subject;
use journal::dead_letters::Chosen;
use journal::{EntryId, Lane};
use serde::Deserialize;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::api::Change;
use crate::extract::PageCursor;
use crate::problem::Problem;

/// Maximum number of ids in a request.
const IDS_MAX: usize = 1000;

/// Maximum number of ids in an audit record.
const IDS_RECORDED_MAX: usize = 100;

/// All entries, or some by id.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeadLetterSelection {
    /// Up to 1000.
    #[serde(default)]
    ids: Vec<String>,
    /// All entries, instead of `ids`.
    #[serde(default)]
    all: bool,
}

impl DeadLetterSelection {
    pub(super) fn chosen(&self) -> Result<Chosen, Problem> {
        match (self.all, self.ids.is_empty()) {
            (true, true) => Ok(Chosen::All),
            (false, false) if self.ids.len() <= IDS_MAX => {
                let read =
                    |id: &String| id.parse().map_err(|error| Problem::bad_request(format!("ids: {error}")));
                Ok(Chosen::These(self.ids.iter().map(read).collect::<Result<Vec<EntryId>, _>>()?))
            }
            _ => Err(Problem::bad_request(format!("send either \"all\": true, or 1 to {IDS_MAX} \"ids\""))),
        }
    }

    /// The change for the audit trail.
    pub(super) fn change(&self, lane: Lane, dead: &'static str, failed: &'static str) -> Change {
        let action = if lane == Lane::Dead { dead } else { failed };
        match self.all {
            true => Change::new(action, Subject::new("dead_letter", "all")),
            false => {
                Change::new(action, Subject::new("dead_letter", self.ids.first().map_or("", String::as_str)))
                    .with("ids", self.ids.iter().take(IDS_RECORDED_MAX).cloned().collect::<Vec<_>>())
            }
        }
    }
}

impl ToSchema for DeadLetterSelection {
    fn name() -> Cow<'static, str> {
        "DeadLetterSelection".into()
    }
}

/// Written by hand: a derived schema cannot express the alternative.
impl PartialSchema for DeadLetterSelection {
    fn schema() -> RefOr<Schema> {
        let ids = || {
            let id = ObjectBuilder::new().schema_type(Type::String).pattern(Some(EntryId::PATTERN));
            ArrayBuilder::new().items(id.build()).description(Some("Up to 1000."))
        };
        let all = |value: bool| {
            let whether = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([value]));
            whether.description(Some("All entries, instead of `ids`."))
        };
        let some = ObjectBuilder::new()
            .title(Some("By id"))
            .property("ids", ids().min_items(Some(1)).max_items(Some(IDS_MAX)).build())
            .property("all", all(false).build())
            .required("ids")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
        let every = ObjectBuilder::new()
            .title(Some("All"))
            .property("all", all(true).build())
            .property("ids", ids().max_items(Some(0)).build())
            .required("all")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
        let description = "All entries, or up to 1000 by id.";
        let one = OneOfBuilder::new().item(some.build()).item(every.build()).description(Some(description));
        Schema::OneOf(one.build()).into()
    }
}
