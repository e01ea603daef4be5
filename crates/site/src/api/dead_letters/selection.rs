//! Which entries a request means.

use std::borrow::Cow;

use access::audit::Subject;
use journal::letters::Chosen;
use journal::{EntryId, Lane};
use serde::Deserialize;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::api::Change;
use crate::extract::PageCursor;
use crate::problem::Problem;

/// Entries that can be named in one request.
const IDS_MAX: usize = 1000;

/// Ids that a record names.
const IDS_RECORDED_MAX: usize = 100;

/// Which entries are meant: all, or some.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeadLetterSelection {
    /// The ids; up to 1000 of them.
    #[serde(default)]
    ids: Vec<String>,
    /// All that are there, instead of naming them.
    #[serde(default)]
    all: bool,
}

impl DeadLetterSelection {
    /// Which.
    pub(super) fn chosen(&self) -> Result<Chosen, Problem> {
        match (self.all, self.ids.is_empty()) {
            (true, true) => Ok(Chosen::All),
            (false, false) if self.ids.len() <= IDS_MAX => {
                let read =
                    |id: &String| id.parse().map_err(|error| Problem::bad_request(format!("ids: {error}")));
                Ok(Chosen::These(self.ids.iter().map(read).collect::<Result<Vec<EntryId>, _>>()?))
            }
            _ => Err(Problem::bad_request(format!("say either \"all\": true, or 1 to {IDS_MAX} \"ids\""))),
        }
    }

    /// What is about to be done to them, as the audit trail has it.
    pub(super) fn change(&self, lane: Lane, dead: &'static str, failed: &'static str) -> Change {
        let action = if lane == Lane::Dead { dead } else { failed };
        match self.all {
            true => Change::new(action, Subject::new("letter", "all")),
            false => Change::new(action, Subject::new("letter", self.ids.first().map_or("", String::as_str)))
                .with("ids", self.ids.iter().take(IDS_RECORDED_MAX).cloned().collect::<Vec<_>>()),
        }
    }
}

impl ToSchema for DeadLetterSelection {
    fn name() -> Cow<'static, str> {
        "DeadLetterSelection".into()
    }
}

/// Written by hand: one or the other, which a derived description cannot say.
impl PartialSchema for DeadLetterSelection {
    fn schema() -> RefOr<Schema> {
        let ids = || {
            let id = ObjectBuilder::new().schema_type(Type::String).pattern(Some(EntryId::PATTERN));
            ArrayBuilder::new().items(id.build()).description(Some("The ids; up to 1000 of them."))
        };
        let all = |value: bool| {
            let whether = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([value]));
            whether.description(Some("All that are there, instead of naming them."))
        };
        let some = ObjectBuilder::new()
            .title(Some("Some of them"))
            .property("ids", ids().min_items(Some(1)).max_items(Some(IDS_MAX)).build())
            .property("all", all(false).build())
            .required("ids")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
        let every = ObjectBuilder::new()
            .title(Some("All of them"))
            .property("all", all(true).build())
            .property("ids", ids().max_items(Some(0)).build())
            .required("all")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
        let description = "Which entries are meant: all, or up to 1000 by their ids.";
        let one = OneOfBuilder::new().item(some.build()).item(every.build()).description(Some(description));
        Schema::OneOf(one.build()).into()
    }
}
