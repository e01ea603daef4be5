//! `/docs`: the OpenAPI description as HTML, without scripts or external files, in English and Chinese.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::language::{Language, Words};

const STYLE: &str = include_str!("docs.css");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A route and method.
struct Operation<'d> {
    method: &'static str,
    path: &'d str,
    spec: &'d Json,
}

/// The description in the language of the page.
struct Docs<'d> {
    document: &'d Json,
    words: &'static Words,
}

pub(super) fn render(document: &Json, language: Language) -> String {
    let document = &language.translate(document);
    let docs = Docs { document, words: language.words() };
    let operations = operations_of(document);
    let mut page = String::with_capacity(64 * 1024);
    let title = text(&document["info"], "title");
    let version = text(&document["info"], "version");
    let _ = write!(
        page,
        "<!doctype html><html lang=\"{}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} API</title><style>{STYLE}</style></head><body><header>{}\
         <h1>{title} <small>{version}</small></h1>{}<p>OpenAPI: <a href=\"/openapi.json\">openapi.json</a></p></header>",
        language.tag(),
        language_links(language),
        paragraphs(&text(&document["info"], "description")),
    );
    contents(&mut page, document, &operations);
    for tag in tags_of(document) {
        let name = text(tag, "name");
        let mut of_tag = operations.iter().filter(|operation| has_tag(operation.spec, &name)).peekable();
        if of_tag.peek().is_none() {
            continue;
        }
        let _ = write!(
            page,
            "<section><h2 id=\"{name}\">{}</h2>{}",
            text(tag, "title"),
            paragraphs(&text(tag, "description"))
        );
        of_tag.for_each(|operation| write_operation(&mut page, operation, &docs));
        page.push_str("</section>");
    }
    page.push_str("</body></html>");
    page
}

/// The language switch of a page without scripts.
fn language_links(current: Language) -> String {
    let mut links = "<p class=\"languages\">".to_owned();
    for language in Language::ALL {
        let (code, tag, name) = (language.code(), language.tag(), language.words().language);
        let mark = if language == current { " aria-current=\"true\"" } else { "" };
        let _ = write!(
            links,
            "<a href=\"/docs?lang={code}\" lang=\"{tag}\" hreflang=\"{tag}\"{mark}>{name}</a> "
        );
    }
    links + "</p>"
}

fn operations_of(document: &Json) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            METHODS.into_iter().filter_map(move |method| {
                let spec = methods.get(method)?;
                Some(Operation { method, path, spec })
            })
        })
        .collect()
}

fn tags_of(document: &Json) -> impl Iterator<Item = &Json> {
    document["tags"].as_array().into_iter().flatten()
}

fn has_tag(operation: &Json, name: &str) -> bool {
    operation["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == name))
}

/// Table of contents.
fn contents(page: &mut String, document: &Json, operations: &[Operation<'_>]) {
    page.push_str("<nav><ul>");
    for tag in tags_of(document) {
        let name = text(tag, "name");
        if operations.iter().any(|operation| has_tag(operation.spec, &name)) {
            let _ = write!(
                page,
                "<li><a href=\"#{name}\">{}</a> {}</li>",
                text(tag, "title"),
                escape(&text(tag, "description"))
            );
        }
    }
    page.push_str("</ul></nav>");
}

fn write_operation(page: &mut String, operation: &Operation<'_>, docs: &Docs<'_>) {
    let Operation { method, path, spec } = operation;
    let scope = scope_of(spec).map_or_else(
        || format!("<span class=\"scope open\">{}</span>", docs.words.open),
        |scope| format!("<span class=\"scope {scope}\">{scope}</span>"),
    );
    let _ = write!(
        page,
        "<article><h3><span class=\"method {method}\">{}</span> <code>{}</code> {scope}</h3><p class=\"summary\">{}</p>{}",
        method.to_uppercase(),
        escape(path),
        with_code(&escape(&text(spec, "summary"))),
        paragraphs(&text(spec, "description")),
    );
    write_parameters(page, spec, docs.words);
    if let Some(content) = spec["requestBody"]["content"].as_object() {
        for (kind, content) in content {
            let _ = write!(page, "<details><summary>{}: {}</summary>", docs.words.body, escape(kind));
            write_schema(page, &content["schema"], docs);
            page.push_str("</details>");
        }
    }
    write_responses(page, spec, docs);
    page.push_str("</article>");
}

/// Required scope; none for public routes.
fn scope_of(spec: &Json) -> Option<String> {
    let requirements = spec["security"].as_array()?;
    if requirements.iter().any(|one| one.as_object().is_some_and(|one| one.is_empty())) {
        return None;
    }
    Some(requirements.first()?["api_key"][0].as_str()?.to_owned())
}

fn write_parameters(page: &mut String, spec: &Json, words: &Words) {
    let parameters: Vec<&Json> = spec["parameters"].as_array().into_iter().flatten().collect();
    if parameters.is_empty() {
        return;
    }
    let Words { parameter, location, kind, required, .. } = words;
    let _ = write!(page, "<table><tr><th>{parameter}</th><th>{location}</th><th>{kind}</th><th></th></tr>");
    for parameter in parameters {
        let mark =
            if parameter["required"] == true { format!(" <em>{required}</em>") } else { String::new() };
        let _ = write!(
            page,
            "<tr><td><code>{}</code>{mark}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&text(parameter, "name")),
            escape(&text(parameter, "in")),
            escape(&kind_of(&parameter["schema"], words)),
            with_code(&escape(&text(parameter, "description"))),
        );
    }
    page.push_str("</table>");
}

fn write_responses(page: &mut String, spec: &Json, docs: &Docs<'_>) {
    for (status, response) in spec["responses"].as_object().into_iter().flatten() {
        let schema = response["content"].as_object().and_then(|content| content.values().next());
        // Errors have the same schema everywhere.
        let Some(schema) = schema.filter(|_| status.starts_with('2')) else { continue };
        let _ = write!(
            page,
            "<details><summary>{}: {}</summary>",
            escape(status),
            escape(&text(response, "description"))
        );
        write_schema(page, &schema["schema"], docs);
        page.push_str("</details>");
    }
}

/// A table of the fields of an object or of the items of an array; one table per alternative.
fn write_schema(page: &mut String, schema: &Json, docs: &Docs<'_>) {
    let (name, schema) = resolve(schema, docs.document);
    if let Some(name) = name {
        let _ = write!(page, "<h4>{}</h4>", escape(name));
    }
    if let Some(alternatives) = schema["oneOf"].as_array() {
        for alternative in alternatives {
            let _ = write!(page, "<h4>{}</h4>", escape(&text(alternative, "title")));
            write_schema(page, alternative, docs);
        }
        return;
    }
    let fields = fields_of(schema, docs.document);
    if fields.is_empty() {
        let _ = write!(page, "<p><code>{}</code></p>", escape(&kind_of(schema, docs.words)));
        write_within(page, schema, docs);
        return;
    }
    let _ =
        write!(page, "<table><tr><th>{}</th><th>{}</th><th></th></tr>", docs.words.field, docs.words.kind);
    for (field, kind) in &fields {
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            escape(field),
            escape(&kind_of(kind, docs.words)),
            with_code(&escape(&text(kind, "description"))),
        );
    }
    page.push_str("</table>");
    fields.into_iter().for_each(|(_, kind)| write_within(page, kind, docs));
}

/// Fields of an object, with those of the objects that it extends.
fn fields_of<'d>(schema: &'d Json, document: &'d Json) -> Vec<(&'d String, &'d Json)> {
    let (_, schema) = resolve(schema, document);
    let extended = schema["allOf"].as_array().into_iter().flatten();
    let inherited = extended.flat_map(|part| fields_of(part, document));
    inherited.chain(schema["properties"].as_object().into_iter().flatten()).collect()
}

/// The schema of a nested object, or of the items of an array.
fn write_within(page: &mut String, kind: &Json, docs: &Docs<'_>) {
    let items = &kind["items"];
    if let Some(reference) = reference_of(kind).or_else(|| reference_of(items)) {
        let named = serde_json::json!({ "$ref": reference });
        write_schema(page, &named, docs);
    } else if items["properties"].is_object() {
        let _ = write!(page, "<h4>{}</h4>", docs.words.each_item);
        write_schema(page, items, docs);
    }
}

fn reference_of(schema: &Json) -> Option<&str> {
    let either = schema["oneOf"].as_array().into_iter().flatten();
    let candidates = std::iter::once(schema).chain(either);
    candidates.into_iter().find_map(|schema| schema["$ref"].as_str())
}

/// Follows a `$ref`.
fn resolve<'d>(schema: &'d Json, document: &'d Json) -> (Option<&'d str>, &'d Json) {
    let Some(name) = reference_of(schema).and_then(|reference| reference.rsplit('/').next()) else {
        return (None, schema);
    };
    match document["components"]["schemas"].as_object().and_then(|schemas| schemas.get_key_value(name)) {
        Some((name, named)) => (Some(name), named),
        None => (None, schema),
    }
}

/// Short name of a type.
fn kind_of(schema: &Json, words: &Words) -> String {
    if let Some(reference) = reference_of(schema) {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let kind = match &schema["type"] {
        Json::String(kind) => kind.clone(),
        Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(words.or),
        _ => String::new(),
    };
    if kind.starts_with("array") {
        return format!("{} {}", words.list_of, kind_of(&schema["items"], words));
    }
    match schema["enum"].as_array() {
        Some(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(words.or),
        None => kind,
    }
}

fn text(spec: &Json, name: &str) -> String {
    spec[name].as_str().unwrap_or_default().to_owned()
}

fn paragraphs(text: &str) -> String {
    text.split("\n\n")
        .filter(|part| !part.trim().is_empty())
        .map(|part| format!("<p>{}</p>", with_code(&escape(part))))
        .collect()
}

/// Converts backticks to `<code>`.
fn with_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut html = parts.next().unwrap_or_default().to_owned();
    for (position, part) in parts.enumerate() {
        html.push_str(if position % 2 == 0 { "<code>" } else { "</code>" });
        html.push_str(part);
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
