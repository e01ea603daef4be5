//! Languages of `/docs`. `zh.json` has the Chinese text of every paragraph of the description, by its English text.

use http::HeaderValue;
use serde_json::{Map, Value as Json, json};

const CHINESE: &str = include_str!("zh.json");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

/// The page's own texts.
pub(super) struct Words {
    pub(super) language: &'static str,
    pub(super) open: &'static str,
    pub(super) body: &'static str,
    pub(super) parameter: &'static str,
    pub(super) location: &'static str,
    pub(super) kind: &'static str,
    pub(super) required: &'static str,
    pub(super) field: &'static str,
    pub(super) each_item: &'static str,
    pub(super) list_of: &'static str,
    pub(super) or: &'static str,
}

impl Language {
    pub(super) const ALL: [Language; 2] = [Language::English, Language::Chinese];

    /// As in `?lang=`, and in the dashboard.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh",
        }
    }

    /// BCP 47.
    pub(super) const fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        }
    }

    /// `?lang=`, else the first known language that the browser accepts.
    pub(super) fn of_request(query: Option<&str>, accepted: Option<&HeaderValue>) -> Language {
        let known = |code: &str| Language::ALL.into_iter().find(|language| language.code() == code);
        let mut parameters = query.unwrap_or_default().split('&');
        let chosen = parameters.find_map(|parameter| known(parameter.strip_prefix("lang=")?));
        let accepted = accepted.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let primary =
            |range: &str| range.trim().split(['-', ';']).next().unwrap_or_default().to_ascii_lowercase();
        chosen
            .or_else(|| accepted.split(',').find_map(|range| known(&primary(range))))
            .unwrap_or(Language::English)
    }

    pub(super) const fn words(self) -> &'static Words {
        match self {
            Language::English => &Words {
                language: "English",
                open: "open",
                body: "Body",
                parameter: "parameter",
                location: "in",
                kind: "type",
                required: "required",
                field: "field",
                each_item: "each item",
                list_of: "list of",
                or: " or ",
            },
            Language::Chinese => &Words {
                language: "中文",
                open: "公开",
                body: "请求体",
                parameter: "参数",
                location: "位置",
                kind: "类型",
                required: "必填",
                field: "字段",
                each_item: "每一项",
                list_of: "列表：",
                or: " 或 ",
            },
        }
    }

    /// The description with its texts in this language; each tag gets a `title`.
    pub(super) fn translate(self, document: &Json) -> Json {
        let texts: Map<String, Json> = match self {
            Language::English => Map::new(),
            Language::Chinese => {
                serde_json::from_str(CHINESE).expect("zh.json is compiled in, and a test parses it")
            }
        };
        let mut document = document.clone();
        translate(&mut document, &texts);
        for tag in document["tags"].as_array_mut().into_iter().flatten() {
            let name = tag["name"].as_str().unwrap_or_default();
            tag["title"] = json!(translated(name, &texts));
        }
        document
    }
}

fn translate(json: &mut Json, texts: &Map<String, Json>) {
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::String(text) if matches!(name.as_str(), "summary" | "description" | "title") => {
                        let paragraphs: Vec<String> =
                            text.split("\n\n").map(|paragraph| translated(paragraph, texts)).collect();
                        *text = paragraphs.join("\n\n");
                    }
                    other => translate(other, texts),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| translate(item, texts)),
        _ => {}
    }
}

/// A paragraph without a translation stays in English.
fn translated(paragraph: &str, texts: &Map<String, Json>) -> String {
    let key = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    match texts.get(&key) {
        Some(Json::String(text)) => text.clone(),
        _ => paragraph.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_takes_precedence_over_the_language_of_the_browser() {
        let of = |query, accepted| {
            let accepted: Option<HeaderValue> = Option::map(accepted, HeaderValue::from_static);
            Language::of_request(query, accepted.as_ref())
        };
        assert_eq!(of(None, None), Language::English);
        assert_eq!(of(None, Some("de, ZH-Hans-CN;q=0.9, en;q=0.8")), Language::Chinese);
        assert_eq!(of(Some("lang=en"), Some("zh-CN")), Language::English);
        assert_eq!(of(Some("lang=zh"), Some("en")), Language::Chinese);
        assert_eq!(of(Some("lang=fr"), Some("en, zh")), Language::English);
    }

    #[test]
    fn paragraphs_are_translated_and_unknown_ones_stay() {
        let document = json!({
            "tags": [{ "name": "users", "description": "API\nkeys" }],
            "paths": { "/a": { "get": { "summary": "List users\n\nA text without a translation" } } },
        });
        let chinese = Language::Chinese.translate(&document);
        assert_eq!(
            chinese["tags"][0],
            json!({ "name": "users", "title": "用户", "description": "API 密钥" })
        );
        assert_eq!(chinese["paths"]["/a"]["get"]["summary"], "列出用户\n\nA text without a translation");
        assert_eq!(Language::English.translate(&document)["tags"][0]["title"], "users");
    }
}
