//! The report as a table and as JSON.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde::Serialize;

/// One line of the table.
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
    fn cells(&self, note_number: Option<usize>) -> [String; 6] {
        let number_of_note = note_number.map_or_else(String::new, |number| format!(" [{number}]"));
        [
            format!("{}{number_of_note}", self.what),
            format!("{} {}", grouped(self.figure), self.unit).trim_end().to_owned(),
            self.limit.map_or_else(|| "-".to_owned(), grouped),
            self.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            self.budget.map_or_else(|| "-".to_owned(), Budget::text),
            self.verdict.text(),
        ]
    }
}

impl Budget {
    pub fn judge(self, figure: f64, ratio: Option<f64>) -> Verdict {
        // The excess as a share of the budget.
        let beyond = match (self, ratio) {
            (Budget::RatioAtLeast(least), Some(ratio)) => (least - ratio) / least,
            (Budget::RatioAtMost(most), Some(ratio)) => (ratio - most) / most,
            (Budget::FigureAtMost(most), _) => (figure - most) / most,
            (Budget::RatioAtLeast(_) | Budget::RatioAtMost(_), None) => return Verdict::NotJudged,
        };
        if beyond > 0.0 { Verdict::MissedBy(beyond) } else { Verdict::Met }
    }

    fn text(self) -> String {
        match self {
            Budget::RatioAtLeast(least) => format!(">= {least} x"),
            Budget::RatioAtMost(most) => format!("<= {most} x"),
            Budget::FigureAtMost(most) => format!("<= {}", grouped(most)),
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
    /// The header, then a line per row; and the notes that the lines refer to by number. Equal notes are one.
    fn lines_and_notes(&self) -> (Vec<[String; 6]>, Vec<&str>) {
        let mut notes: Vec<&str> = Vec::new();
        let mut lines = vec![["what", "figure", "limit", "ratio", "budget", "verdict"].map(str::to_owned)];
        for row in &self.rows {
            let number =
                row.note.as_deref().map(|note| match notes.iter().position(|known| *known == note) {
                    Some(position) => position + 1,
                    None => {
                        notes.push(note);
                        notes.len()
                    }
                });
            lines.push(row.cells(number));
        }
        (lines, notes)
    }

    fn machine_text(&self) -> String {
        let Machine { processor, cores, kernel } = &self.machine;
        format!("{processor}, {cores} cores, Linux {kernel}")
    }

    /// A Markdown table, with the machine above and the notes below.
    pub fn to_markdown(&self) -> String {
        let (lines, notes) = self.lines_and_notes();
        let mut out = format!("{}.\n\n", self.machine_text());
        for (number, line) in lines.iter().enumerate() {
            let cells: Vec<String> = line.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
            if number == 0 {
                out.push_str("|---|--:|--:|--:|---|---|\n");
            }
        }
        for (position, note) in notes.iter().enumerate() {
            let _ = write!(out, "\n[{}] {note}\n", position + 1);
        }
        out
    }

    /// Aligned, with its notes below.
    pub fn to_table(&self) -> String {
        let (lines, notes) = self.lines_and_notes();
        let mut out = format!("{}\n\n", self.machine_text());
        out.push_str(&aligned(&lines));
        for (position, note) in notes.iter().enumerate() {
            let space = if position == 0 { "\n" } else { "" };
            let _ = writeln!(out, "{space}[{}] {note}", position + 1);
        }
        out
    }
}

const BEGIN: &str = "<!-- written by make bench: begin -->\n";
const END: &str = "<!-- written by make bench: end -->\n";

/// A page, `docs/benchmarks.md`, with `figures` between its markers.
pub fn with_figures(page: &str, figures: &str) -> anyhow::Result<String> {
    let parts = page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.context("the page lacks its two markers")?;
    Ok(format!("{head}{BEGIN}\n{figures}\n{END}{tail}"))
}

/// Columns as wide as their widest cell; the first and the last two left-aligned, numbers right-aligned.
fn aligned(lines: &[[String; 6]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
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
        Row { what, figure, unit, limit: None, ratio: None, budget: None, verdict: Verdict::NoBudget, note }
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
