//! Output of commands: aligned text, or JSON.

use std::fmt;
use std::io::{self, Write};

use domain::UnixTime;
use serde_json::Value as Json;

#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    pub fn show(self, json: &Json, human: &dyn fmt::Display) -> io::Result<()> {
        let text = if self.json { format!("{json}\n") } else { human.to_string() };
        match io::stdout().write_all(text.as_bytes()) {
            // The reader (`head`) has closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
}

/// Columns are as wide as needed.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(header: &[&str]) -> Self {
        Table { rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Put the longest column last: nothing is aligned behind it.
    pub fn add(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| printable(cell)).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.len() == 1 {
            return f.write_str("none\n");
        }
        write_aligned(f, &self.rows)
    }
}

/// As in 1.50 GiB. Exact amounts are in the JSON.
pub fn bytes(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut rest = bytes;
    while rest >= 1024 * 1024 && unit + 2 < UNITS.len() {
        rest /= 1024;
        unit += 1;
    }
    match rest {
        0..1024 => format!("{rest} {}", UNITS[unit]),
        _ => format!("{:.2} {}", rest as f64 / 1024.0, UNITS[unit + 1]),
    }
}

/// Its two largest units: 3 d 4 h.
pub fn duration(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (name, length) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 || !parts.is_empty() {
            parts.push((count, name));
        }
    }
    parts.truncate(2);
    let shown: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}

/// As in 3 d 4 h ago.
pub fn ago(at: UnixTime, now: UnixTime) -> String {
    format!("{} ago", duration(now.since(at).0.into()))
}

/// Zero means unknown.
pub fn size(total_bytes: u64) -> String {
    match total_bytes {
        0 => "unknown".to_owned(),
        known => bytes(known.into()),
    }
}

/// UTC: 2026-01-31 18:05:09.
pub fn second(at: UnixTime) -> String {
    format!("{}:{:02}", moment(at), at.0 % 60)
}

/// UTC: 2026-01-31 18:05.
pub fn moment(at: UnixTime) -> String {
    let (days, rest) = (i64::from(at.0 / 86_400), at.0 % 86_400);
    // Howard Hinnant's civil_from_days, for days since 1970.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3_600, rest / 60 % 60)
}

pub fn yes_or_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

/// Names and values, one per line.
#[derive(Debug, Default)]
pub struct Fields {
    rows: Vec<Vec<String>>,
}

impl Fields {
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.rows.push(vec![name.to_owned(), printable(&value.to_string())]);
        self
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_aligned(f, &self.rows)
    }
}

fn write_aligned(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Text from files must not control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_blanks() {
        let mut table = Table::new(&["id", "enabled", "name"]);
        table.add(vec!["7".into(), "yes".into(), String::new()]);
        table.add(vec!["1234".into(), "no".into(), "Ubuntu".into()]);
        assert_eq!(table.to_string(), "id    enabled  name\n7     yes\n1234  no       Ubuntu\n");
        let fields = Fields::default().with("id", 7).with("passkey", "abc");
        assert_eq!(fields.to_string(), "id       7\npasskey  abc\n");
    }

    #[test]
    fn amounts_are_shown_in_readable_units() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.50 KiB"),
            (5 << 30, "5.00 GiB"),
            (1 << 80, "1048576.00 EiB"),
        ];
        for (amount, shown) in cases {
            assert_eq!(bytes(amount), shown);
        }
        let cases = [(0, "0 s"), (59, "59 s"), (3600, "1 h"), (90_061, "1 d 1 h"), (86_400 + 60, "1 d")];
        for (seconds, shown) in cases {
            assert_eq!(duration(seconds), shown);
        }
        assert_eq!(ago(UnixTime(1000), UnixTime(1000 + 7200)), "2 h ago");
        assert_eq!((size(0), size(2048)), ("unknown".to_owned(), "2.00 KiB".to_owned()));
        assert_eq!(second(UnixTime(951_826_509)), "2000-02-29 12:15:09");
        assert_eq!(moment(UnixTime(0)), "1970-01-01 00:00");
        assert_eq!(moment(UnixTime(951_826_500)), "2000-02-29 12:15");
        assert_eq!(moment(UnixTime(1_794_900_000)), "2026-11-17 07:20");
    }

    #[test]
    fn an_empty_table_prints_none() {
        assert_eq!(Table::new(&["id"]).to_string(), "none\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let fields = Fields::default().with("name", "a\u{1b}[31mb\nc");
        assert_eq!(fields.to_string(), "name  a\u{fffd}[31mb\u{fffd}c\n");
    }
}
