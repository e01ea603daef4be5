//! Runs benchmarks, and builds the rows of the report from their specifications.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::{Map, Value};
use simulate::load::Waiting;
use tempfile::TempDir;

use crate::against::PeerSpec;
use crate::measure::Comparison;
use crate::process::Cores;
use crate::report::{Machine, Report, Row, Verdict};
use crate::sizes::Sizes;
use crate::table::{BENCHMARKS, Benchmark};

/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's binary; without one, a bare server stands in where the clients can use it, and the rest is left out.
    pub binary: Option<PathBuf>,
    /// This program, which serves as fixed-response server.
    pub this_program: PathBuf,
    pub sizes: Sizes,
    /// HTTP connections.
    pub connections: usize,
    /// HTTP requests in flight on each.
    pub pipeline: usize,
    /// Runs only benchmarks whose name contains this.
    pub only: Option<String>,
    /// Other trackers to compare with.
    pub against: Vec<PeerSpec>,
    /// File with instruction counts.
    pub instructions: Option<PathBuf>,
}

/// What a benchmark gets, and where it puts its figures.
pub struct Run<'a> {
    pub options: &'a Options,
    pub sizes: Sizes,
    pub cores: Cores,
    benchmark: &'static Benchmark,
    rows: Vec<Row>,
    details: Map<String, Value>,
}

/// A measured figure.
pub struct Figure {
    value: f64,
    /// The limit, and the figure's ratio to it.
    limit: Option<(f64, f64)>,
    things: String,
    note: String,
    parts_us: Vec<(String, f64)>,
}

/// Runs the benchmarks that the options select.
pub fn run(options: &Options) -> anyhow::Result<Report> {
    let selects =
        |benchmark: &&Benchmark| options.only.as_deref().is_none_or(|only| benchmark.name.contains(only));
    let selected: Vec<&'static Benchmark> = BENCHMARKS.iter().filter(selects).collect();
    if selected.is_empty() {
        let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
        bail!("no such benchmark; there are {}", names.join(", "));
    }
    if let Some(binary) = options.binary.as_deref().filter(|binary| !binary.is_file()) {
        bail!("no server at {}: build it with `cargo build --release -p rollcall`", binary.display());
    }
    // Read before pinning, which leaves this process one core.
    let machine = Machine::this();
    let cores = Cores::of_this_machine()?;
    cores.pin_load()?;
    let (mut rows, mut details) = (Vec::new(), Map::new());
    for benchmark in selected {
        let mut run = Run { options, sizes: options.sizes, cores, benchmark, rows, details };
        (benchmark.run)(&mut run).with_context(|| format!("measuring {}", benchmark.name))?;
        (rows, details) = (run.rows, run.details);
    }
    Ok(Report { machine, rows, details })
}

impl Options {
    /// Everything, at these sizes.
    pub fn new(sizes: Sizes) -> Options {
        Options {
            binary: None,
            this_program: PathBuf::new(),
            sizes,
            connections: 256,
            pipeline: 1,
            only: None,
            against: Vec::new(),
            instructions: None,
        }
    }
}

impl Run<'_> {
    /// The server's binary, unless a fixed-response server stands in for it.
    pub fn binary(&self) -> Option<&Path> {
        self.options.binary.as_deref()
    }

    /// Puts a figure into the row of this name, which the table has.
    pub fn add(&mut self, what: &str, figure: Figure) {
        let spec = self.benchmark.rows.iter().find(|row| row.what == what);
        let spec = spec.unwrap_or_else(|| panic!("{} has no row {what}", self.benchmark.name));
        let ratio = figure.limit.map(|(_, ratio)| ratio);
        let budget = spec.budget.filter(|budget| ratio.is_some() || !budget.is_ratio());
        let limit = match figure.limit {
            Some(_) if !spec.limit.is_empty() => format!("limit = {}", spec.limit),
            _ => String::new(),
        };
        let notes: Vec<String> = [figure.note, limit].into_iter().filter(|note| !note.is_empty()).collect();
        self.rows.push(Row {
            what: spec.what.replace("{}", &figure.things),
            figure: figure.value,
            unit: spec.unit,
            limit: figure.limit.map(|(limit, _)| limit),
            ratio,
            budget,
            verdict: match budget {
                None => Verdict::NoBudget,
                // Rates mean nothing where load and server take each other's time.
                Some(_) if self.cores.are_one() && !figure.parts_us.is_empty() => Verdict::NotJudged,
                Some(budget) => budget.judge(figure.value, ratio),
            },
            parts_us: figure.parts_us,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        });
    }

    /// The rate of ours against that of the limit.
    pub fn add_rates(&mut self, what: &str, comparison: &Comparison, note: &str) {
        let notes: Vec<String> =
            [note.to_owned(), comparison.time_note()].into_iter().filter(|note| !note.is_empty()).collect();
        self.detail(what, comparison);
        self.add(what, comparison.rates().noting(notes.join("; ")));
    }

    /// Raw results, for the JSON.
    pub fn detail(&mut self, what: &str, raw: impl Serialize) {
        self.details.insert(what.to_owned(), serde_json::to_value(raw).unwrap_or(Value::Null));
    }

    /// How load clients wait: they must not disturb a server on the same core.
    pub fn waiting(&self) -> Waiting {
        if self.cores.are_one() { Waiting::Sleep } else { Waiting::Spin }
    }
}

impl Figure {
    pub fn of(value: f64) -> Figure {
        Figure { value, limit: None, things: String::new(), note: String::new(), parts_us: Vec::new() }
    }

    /// With a limit of the same run, and the ratio to it.
    pub fn against(self, limit: f64, ratio: f64) -> Figure {
        Figure { limit: Some((limit, ratio)), ..self }
    }

    /// With a limit of the same run that is lower for better figures.
    pub fn over(self, limit: f64) -> Figure {
        let ratio = self.value / limit.max(1e-9);
        self.against(limit, ratio)
    }

    /// What `{}` in the row's name stands for.
    pub fn with(self, things: impl Into<String>) -> Figure {
        Figure { things: things.into(), ..self }
    }

    /// What a reader must know to understand it.
    pub fn noting(self, note: impl Into<String>) -> Figure {
        Figure { note: note.into(), ..self }
    }

    /// Processor time for each, in microseconds, by part.
    pub fn with_parts(self, parts_us: Vec<(String, f64)>) -> Figure {
        Figure { parts_us, ..self }
    }
}

/// A folder for databases, settings and logs.
pub(crate) fn new_folder() -> anyhow::Result<TempDir> {
    TempDir::with_prefix("bench-").context("making a folder")
}
