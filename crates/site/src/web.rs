//! The dashboard: files embedded in the binary.
//!
//! # Guarantees
//!
//! - `/` is the operators' page, `/me` a member's; without a built dashboard both show how to build it.
//! - Files under `/assets` have a hash in their name and are cached forever; pages are revalidated, with 304 if unchanged.
//! - Pages load nothing from other hosts, run no inline script and cannot be framed, except `/me` by
//!   `site.embed_origins`.
//! - Files are compressed when the dashboard is built, not per request.
//!
//! # Deliberately absent
//!
//! Access to the file system: paths are looked up in the embedded table only.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::etag;
use crate::problem::Problem;
use crate::settings::SiteSettings;
use crate::site::Site;

mod accept;
// Used by the build script; compiled here for its tests.
#[cfg(test)]
mod embed;

use accept::Encoding;

#[derive(Clone, Copy, Debug)]
struct WebFile {
    /// Path in `web/dist`.
    path: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// Table made by the build script.
static FILES: &[WebFile] = include!(concat!(env!("OUT_DIR"), "/web_files.rs"));

/// Shown if the dashboard was not built.
const UNBUILT: WebFile =
    WebFile { path: "unbuilt.html", plain: include_bytes!("web/unbuilt.html"), brotli: None, gzip: None };

/// Own files and the API only; `'self'` covers the WebSocket.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors ";
/// Extensions of files that are served from the root.
const ROOT_EXTENSIONS: [&str; 6] = [".svg", ".ico", ".png", ".webmanifest", ".txt", ".webp"];

/// Marks a response that the origins in its policy may frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framable;

/// A file with its response headers.
#[derive(Debug)]
struct StaticFile {
    file: WebFile,
    /// Hash of the uncompressed file.
    tag: String,
    /// Only for pages.
    policy: Option<HeaderValue>,
    framable: bool,
}

pub(crate) fn routes(settings: &SiteSettings) -> Router<Arc<Site>> {
    let page = |path: &str, origins: &[String]| {
        let file = FILES.iter().find(|file| file.path == path).copied().unwrap_or(UNBUILT);
        Arc::new(StaticFile::page(file, origins))
    };
    let assets: BTreeMap<&str, StaticFile> = FILES
        .iter()
        .filter_map(|file| Some((file.path.strip_prefix("assets/")?, StaticFile::file(*file))))
        .collect();
    let assets = Arc::new(assets);
    let asset = move |State(_): State<Arc<Site>>, Path(name): Path<String>, headers: HeaderMap| async move {
        match assets.get(name.as_str()) {
            Some(served) => served.answer(&headers, "public, max-age=31536000, immutable"),
            None => Problem::not_found("unknown_file", "no such file of the dashboard: reload the page")
                .into_response(),
        }
    };
    let mut routes = Router::new()
        .route("/", revalidated(page("index.html", &[])))
        .route("/me", revalidated(page("me.html", &settings.embed_origins)))
        .route("/assets/{*name}", get(asset));
    for file in FILES.iter().filter(|file| is_root_file(file.path)) {
        routes = routes.route(&format!("/{}", file.path), revalidated(Arc::new(StaticFile::file(*file))));
    }
    routes
}

pub fn is_built() -> bool {
    FILES.iter().any(|file| file.path == "index.html")
}

fn is_root_file(path: &str) -> bool {
    !path.contains('/') && ROOT_EXTENSIONS.iter().any(|ending| path.ends_with(ending))
}

fn revalidated(served: Arc<StaticFile>) -> axum::routing::MethodRouter<Arc<Site>> {
    get(move |headers: HeaderMap| async move { served.answer(&headers, "no-cache") })
}

impl StaticFile {
    fn file(file: WebFile) -> StaticFile {
        StaticFile { file, tag: etag::hash_of(file.plain), policy: None, framable: false }
    }

    /// A page that `origins` may frame; none if empty.
    fn page(file: WebFile, origins: &[String]) -> StaticFile {
        let ancestors = if origins.is_empty() { "'none'".to_owned() } else { origins.join(" ") };
        let policy = HeaderValue::from_str(&format!("{POLICY}{ancestors}"))
            .expect("origins are validated with the configuration");
        StaticFile { policy: Some(policy), framable: !origins.is_empty(), ..StaticFile::file(file) }
    }

    fn answer(&self, request: &HeaderMap, cache_control: &'static str) -> Response {
        let (encoding, bytes) = self.encoded_for(request);
        // Each encoding has its own tag.
        let tag = format!("\"{}{}\"", self.tag, encoding.map_or("", Encoding::tag_suffix));
        let is_known = request.get(IF_NONE_MATCH).is_some_and(|known| etag::contains_tag(known, &tag));
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => ([(CONTENT_TYPE, content_type_of(self.file.path))], bytes).into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        if let Some(encoding) = encoding.filter(|_| !is_known) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        if let Some(policy) = &self.policy {
            headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
        }
        if self.framable {
            response.extensions_mut().insert(Framable);
        }
        response
    }

    fn encoded_for(&self, request: &HeaderMap) -> (Option<Encoding>, &'static [u8]) {
        let forms = [(Encoding::Brotli, self.file.brotli), (Encoding::Gzip, self.file.gzip)];
        let available = forms.into_iter().filter_map(|(encoding, bytes)| Some((encoding, bytes?)));
        match accept::best(request, available) {
            Some((encoding, bytes)) => (Some(encoding), bytes),
            None => (None, self.file.plain),
        }
    }
}

fn content_type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: WebFile = WebFile {
        path: "assets/app-1a2b.js",
        plain: b"let a = 1;",
        brotli: Some(b"by brotli"),
        gzip: Some(b"by gzip"),
    };

    fn request(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn header<'r>(response: &'r Response, name: &str) -> &'r str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn each_encoding_of_a_file_has_its_own_tag() {
        let served = StaticFile::file(FILE);
        let mut tags = Vec::new();
        for (accepts, encoding) in
            [("gzip, deflate, br", "br"), ("gzip", "gzip"), ("br;q=0, gzip;q=0", ""), ("identity", "")]
        {
            let response = served.answer(&request(&[("accept-encoding", accepts)]), "no-cache");
            assert_eq!(header(&response, "content-encoding"), encoding, "{accepts}");
            assert_eq!(header(&response, "vary"), "accept-encoding");
            assert_eq!(header(&response, "content-type"), "text/javascript; charset=utf-8");
            tags.push(header(&response, "etag").to_owned());
        }
        assert_eq!(tags[2], tags[3]);
        tags.dedup();
        assert_eq!(tags.len(), 3, "{tags:?}");
        let again = request(&[("accept-encoding", "br"), ("if-none-match", &tags[0])]);
        let response = served.answer(&again, "no-cache");
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert_eq!((header(&response, "content-encoding"), header(&response, "etag")), ("", &*tags[0]));
    }

    #[test]
    fn a_page_can_be_framed_by_configured_origins_only() {
        let alone = StaticFile::page(UNBUILT, &[]).answer(&request(&[]), "no-cache");
        assert!(header(&alone, "content-security-policy").ends_with("frame-ancestors 'none'"));
        assert!(alone.extensions().get::<Framable>().is_none());
        let sites = ["https://pt.example.com".to_owned(), "https://forum.example.com".to_owned()];
        let framed = StaticFile::page(UNBUILT, &sites).answer(&request(&[]), "no-cache");
        let policy = header(&framed, "content-security-policy");
        assert!(policy.ends_with("frame-ancestors https://pt.example.com https://forum.example.com"));
        assert!(framed.extensions().get::<Framable>().is_some());
    }

    #[test]
    fn the_build_script_finds_files_and_their_compressed_forms() {
        let folder = tempfile::tempdir().unwrap();
        assert!(embed::find(&folder.path().join("dist")).unwrap().is_empty());
        std::fs::create_dir_all(folder.path().join("assets")).unwrap();
        for name in [
            "index.html",
            "index.html.br",
            "assets/a-1.js",
            "assets/a-1.js.gz",
            "assets/a-1.js.map",
            "assets/a-1.js.map.br",
            "alone.gz",
            ".hidden",
        ] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let found = embed::find(folder.path()).unwrap();
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["alone.gz", "assets/a-1.js", "index.html"]);
        assert!(found["index.html"].brotli.is_some() && found["index.html"].gzip.is_none());
        assert!(found["assets/a-1.js"].gzip.is_some() && found["assets/a-1.js"].brotli.is_none());
        let table = embed::table(&found);
        assert!(table.contains("WebFile { path: \"index.html\", plain: include_bytes!(\""), "{table}");
        assert_eq!(table.matches("include_bytes!").count(), 5, "{table}");
    }
}
