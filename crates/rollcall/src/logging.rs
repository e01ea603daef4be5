//! Logs to standard error, in UTC, as text or JSON.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt};

use crate::config::{Log, LogFilter, LogFormat};

#[derive(Clone, Debug)]
pub struct LogControl {
    filter: reload::Handle<EnvFilter, Registry>,
}

impl LogControl {
    pub fn set_filter(&self, filter: &LogFilter) -> anyhow::Result<()> {
        self.filter.reload(env_filter(filter)?).context("cannot change log.level")
    }
}

/// Once per process.
pub fn init(log: &Log) -> anyhow::Result<LogControl> {
    let is_terminal = io::stderr().is_terminal();
    let lines = lines(log.format, is_terminal, io::stderr);
    let (filter, handle) = reload::Layer::new(env_filter(&log.level)?);
    tracing_subscriber::registry().with(filter).with(lines).try_init().context("cannot start logging")?;
    Ok(LogControl { filter: handle })
}

fn env_filter(filter: &LogFilter) -> anyhow::Result<EnvFilter> {
    let text = filter.as_str();
    EnvFilter::builder().parse(text).with_context(|| format!("log.level = {text:?} is not a filter"))
}

type Lines = Box<dyn Layer<Filtered> + Send + Sync>;
type Filtered = tracing_subscriber::layer::Layered<reload::Layer<EnvFilter, Registry>, Registry>;

fn lines<W>(format: LogFormat, is_terminal: bool, writer: W) -> Lines
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let is_for_people = match format {
        LogFormat::Auto => is_terminal,
        LogFormat::Human => true,
        LogFormat::Json => false,
    };
    // Timestamps are UTC by default.
    let layer = fmt::layer().with_writer(writer);
    if is_for_people {
        let has_colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        layer.with_ansi(has_colour).with_target(false).boxed()
    } else {
        layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat, is_terminal: bool) -> String {
        let page = Page::default();
        let writer = page.clone();
        let (filter, _handle) = reload::Layer::new(EnvFilter::new("info"));
        let lines = lines(format, is_terminal, move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(filter).with(lines);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(user = 7, "announce refused");
            tracing::debug!("not written");
        });
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn json_is_one_object_per_line_with_utc_time() {
        for (format, is_terminal) in [(LogFormat::Auto, false), (LogFormat::Json, true)] {
            let line = written(format, is_terminal);
            let json: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(json["level"], "INFO");
            assert_eq!(json["message"], "announce refused");
            assert_eq!(json["user"], 7);
            assert!(json["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        }
    }

    #[test]
    fn text_is_one_line_per_event() {
        let line = written(LogFormat::Human, false);
        assert!(line.contains("Z  INFO announce refused user=7"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
