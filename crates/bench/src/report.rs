//! The report as a table and as JSON.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde::Serialize;

/// A part of the processor time is named from this share on.
const PART_SHARE_MIN: f64 = 0.01;

/// A line of a table.
type Cells = Vec<String>;

/// One measured figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub what: String,
    pub figure: f64,
    pub unit: &'static str,
    /// The limit, measured in the same run; none where the budget is absolute.
    pub limit: Option<f64>,
    /// Figure relative to the limit; the budget defines the direction.
    pub ratio: Option<f64>,
    /// The budget of DESIGN.
    pub budget: Option<Budget>,
    pub verdict: Verdict,
    /// Processor time for each, in microseconds, by part. Rows that have it are the first table.
    pub parts_us: Vec<(String, f64)>,
    /// What a reader must know to understand the figure.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// The ratio is at least this.
    RatioAtLeast(f64),
    /// The ratio is at most this.
    RatioAtMost(f64),
    /// The figure is at most this.
    FigureAtMost(f64),
    /// The figure is at least this.
    FigureAtLeast(f64),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Met,
    /// Missed by this share of the budget.
    MissedBy(f64),
    /// This run cannot decide; the note has the reason.
    NotJudged,
    NoBudget,
}

/// The results of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub rows: Vec<Row>,
    /// Raw results, round by round.
    pub details: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Serialize)]
pub struct Machine {
    /// The processor, as it calls itself.
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
}

impl Machine {
    pub fn this() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Machine { processor, cores, kernel: kernel.trim().to_owned() }
    }
}

impl Row {
    fn cells(&self, note_number: Option<usize>) -> Cells {
        let number_of_note = note_number.map_or_else(String::new, |number| format!(" [{number}]"));
        let mut cells = vec![
            format!("{}{number_of_note}", self.what),
            format!("{} {}", grouped(self.figure), self.unit).trim_end().to_owned(),
            self.limit.map_or_else(|| "-".to_owned(), grouped),
            self.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            self.budget.map_or_else(|| "-".to_owned(), Budget::text),
            self.verdict.text(),
        ];
        if !self.parts_us.is_empty() {
            cells.push(parts_text(&self.parts_us));
        }
        cells
    }
}

/// The sum, and the parts that matter, most first.
fn parts_text(parts_us: &[(String, f64)]) -> String {
    let sum: f64 = parts_us.iter().map(|(_, us)| us).sum();
    let mut parts: Vec<_> = parts_us.iter().filter(|(_, us)| *us >= sum * PART_SHARE_MIN).collect();
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let parts: Vec<String> = parts.into_iter().map(|(part, us)| format!("{part} {us:.1}")).collect();
    format!("{sum:.1}: {}", parts.join(", "))
}

impl Budget {
    pub fn is_ratio(self) -> bool {
        matches!(self, Budget::RatioAtLeast(_) | Budget::RatioAtMost(_))
    }

    pub fn judge(self, figure: f64, ratio: Option<f64>) -> Verdict {
        // The excess as a share of the budget.
        let beyond = match (self, ratio) {
            (Budget::RatioAtLeast(least), Some(ratio)) => (least - ratio) / least,
            (Budget::RatioAtMost(most), Some(ratio)) => (ratio - most) / most,
            (Budget::FigureAtMost(most), _) => (figure - most) / most,
            (Budget::FigureAtLeast(least), _) => (least - figure) / least,
            (Budget::RatioAtLeast(_) | Budget::RatioAtMost(_), None) => return Verdict::NotJudged,
        };
        if beyond > 0.0 { Verdict::MissedBy(beyond) } else { Verdict::Met }
    }

    fn text(self) -> String {
        match self {
            Budget::RatioAtLeast(least) => format!(">= {least} x"),
            Budget::RatioAtMost(most) => format!("<= {most} x"),
            Budget::FigureAtMost(most) => format!("<= {}", grouped(most)),
            Budget::FigureAtLeast(least) => format!(">= {}", grouped(least)),
        }
    }
}

impl Verdict {
    fn text(&self) -> String {
        match self {
            Verdict::Met => "met".to_owned(),
            Verdict::MissedBy(share) => format!("missed by {:.1} %", share * 100.0),
            Verdict::NotJudged => "not judged".to_owned(),
            Verdict::NoBudget => "-".to_owned(),
        }
    }
}

impl Report {
    /// The tables: first the rows with parts, then the others. Each has a header, then a line per row. Notes are numbered
    /// throughout; equal ones are one.
    fn tables_and_notes(&self) -> (Vec<Vec<Cells>>, Vec<&str>) {
        let mut notes: Vec<&str> = Vec::new();
        let (with_parts, others): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| !row.parts_us.is_empty());
        let mut tables = Vec::new();
        for rows in [with_parts, others].into_iter().filter(|rows| !rows.is_empty()) {
            let columns = if rows[0].parts_us.is_empty() { &COLUMNS[..6] } else { &COLUMNS };
            let mut lines = vec![columns.iter().map(|column| (*column).to_owned()).collect()];
            for row in rows {
                let note = row.note.as_deref();
                let known = note.and_then(|note| notes.iter().position(|known| *known == note));
                if known.is_none() {
                    notes.extend(note);
                }
                lines.push(row.cells(note.map(|_| known.map_or(notes.len(), |position| position + 1))));
            }
            tables.push(lines);
        }
        (tables, notes)
    }

    fn machine_text(&self) -> String {
        let Machine { processor, cores, kernel } = &self.machine;
        format!("{processor}, {cores} cores, Linux {kernel}")
    }

    /// Markdown tables, with the machine above and the notes below.
    pub fn to_markdown(&self) -> String {
        let (tables, notes) = self.tables_and_notes();
        let mut out = format!("{}.\n", self.machine_text());
        for lines in tables {
            out.push('\n');
            for (number, line) in lines.iter().enumerate() {
                let cells: Vec<String> = line.iter().map(|cell| cell.replace('|', "\\|")).collect();
                let _ = writeln!(out, "| {} |", cells.join(" | "));
                if number == 0 {
                    out.push_str("|---|--:|--:|--:|---|---|");
                    out.push_str(if line.len() > 6 { "---|\n" } else { "\n" });
                }
            }
        }
        for (position, note) in notes.iter().enumerate() {
            let _ = write!(out, "\n[{}] {note}\n", position + 1);
        }
        out
    }

    /// Aligned, with its notes below.
    pub fn to_table(&self) -> String {
        let (tables, notes) = self.tables_and_notes();
        let mut out = format!("{}\n", self.machine_text());
        for lines in tables {
            let _ = write!(out, "\n{}", aligned(&lines));
        }
        for (position, note) in notes.iter().enumerate() {
            let space = if position == 0 { "\n" } else { "" };
            let _ = writeln!(out, "{space}[{}] {note}", position + 1);
        }
        out
    }
}

const COLUMNS: [&str; 7] =
    ["what", "figure", "limit", "ratio", "budget", "verdict", "processor time for each, us"];
const BEGIN: &str = "<!-- written by make bench: begin -->\n";
const END: &str = "<!-- written by make bench: end -->\n";

/// A page, `docs/benchmarks.md`, with `figures` between its markers.
pub fn with_figures(page: &str, figures: &str) -> anyhow::Result<String> {
    let parts = page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.context("the page lacks its two markers")?;
    Ok(format!("{head}{BEGIN}\n{figures}\n{END}{tail}"))
}

/// Columns as wide as their widest cell; numbers right-aligned.
fn aligned(lines: &[Cells]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                1..=3 => format!("{cell:>width$}"),
                _ => format!("{cell:width$}"),
            })
            .collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        if number == 0 {
            let _ = writeln!(out, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
        }
    }
    out
}

/// Thousands separators from a thousand on, one decimal below.
fn grouped(number: f64) -> String {
    if number.abs() < 999.95 {
        return format!("{number:.1}");
    }
    let digits = format!("{:.0}", number.abs());
    let mut out = String::from(if number < 0.0 { "-" } else { "" });
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(999.96), "1,000");
        assert_eq!(grouped(119.64), "119.6");
        assert_eq!(grouped(4.256), "4.3");
    }

    #[test]
    fn a_missed_budget_says_by_how_much() {
        assert_eq!(Budget::RatioAtLeast(0.85).judge(80.0, Some(0.8)).text(), "missed by 5.9 %");
        assert_eq!(Budget::FigureAtMost(120.0).judge(119.0, None), Verdict::Met);
        assert_eq!(Budget::RatioAtMost(1.5).judge(300.0, Some(3.0)).text(), "missed by 100.0 %");
        assert_eq!(Budget::RatioAtLeast(1.0).judge(1.0, None), Verdict::NotJudged);
    }

    fn row(what: &str, figure: f64, unit: &'static str) -> Row {
        let (what, note) = (what.to_owned(), Some("why".to_owned()));
        let (verdict, parts_us) = (Verdict::NoBudget, Vec::new());
        Row { what, figure, unit, limit: None, ratio: None, budget: None, verdict, parts_us, note }
    }

    #[test]
    fn rows_with_parts_are_the_first_table() {
        let parts_us = vec![("few".to_owned(), 0.001), ("sqlite".to_owned(), 1.0), ("http".to_owned(), 2.25)];
        let rows = vec![row("other", 1.0, "ns"), Row { parts_us, ..row("all in", 2.0, "/s") }];
        let report = Report { machine: Machine::this(), rows, details: serde_json::Map::new() };
        let page = report.to_markdown();
        let (all_in, other) = (page.find("| all in [1] |").unwrap(), page.find("| other [1] |").unwrap());
        assert!(all_in < other && page.contains("| - | 3.3: http 2.2, sqlite 1.0 |"), "{page}");
        assert!(report.to_table().contains("processor time for each, us\n"));
    }

    #[test]
    fn the_table_is_aligned_and_repeats_no_note() {
        let rows = vec![row("long name of a thing", 5.0, "ns"), row("short", 123_456.0, "/s")];
        let report = Report { machine: Machine::this(), rows, details: serde_json::Map::new() };
        let table = report.to_table();
        assert_eq!(table.matches("] why").count(), 1, "{table}");
        let page = report.to_markdown();
        assert!(page.contains("| short [1] | 123,456 /s | - | - | - | - |"), "{page}");
        let unit_at = |line: &str| line.find(" ns").or(line.find(" /s")).unwrap();
        let columns: Vec<usize> = table.lines().skip(4).take(2).map(unit_at).collect();
        assert_eq!(columns[0], columns[1], "{table}");
    }

    #[test]
    fn figures_replace_what_stands_between_the_markers_and_nothing_else() {
        let page = format!("# Title\n\n{BEGIN}old\n{END}\nEnd.\n");
        let once = with_figures(&page, "new\n").unwrap();
        assert_eq!(once, format!("# Title\n\n{BEGIN}\nnew\n\n{END}\nEnd.\n"));
        assert_eq!(with_figures(&once, "new\n").unwrap(), once);
        assert!(with_figures("no markers", "new").is_err());
    }
}
