//! What commands print: aligned text for people, JSON for scripts.

use std::fmt;
use std::io::{self, Write};

use serde_json::Value as Json;

/// Where results go and in which form.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// Prints JSON if `json`, text otherwise.
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    /// Prints a result, in one of its two forms.
    pub fn show(self, json: &Json, human: &dyn fmt::Display) -> io::Result<()> {
        let text = if self.json { format!("{json}\n") } else { human.to_string() };
        match io::stdout().write_all(text.as_bytes()) {
            // Whoever reads the output (`head`) has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
}

/// Rows under a header, in columns as wide as they need.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with only a header.
    pub fn new(header: &[&str]) -> Self {
        Table { rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a row. The widest, least predictable cell is best last: nothing is aligned behind it.
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

/// How people read a switch.
pub fn yes_or_no(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

/// Names and values, one a line.
#[derive(Debug, Default)]
pub struct Fields {
    rows: Vec<Vec<String>>,
}

impl Fields {
    /// Adds a line.
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

/// Text from strangers' files must not steer a terminal.
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
    fn an_empty_table_says_so() {
        assert_eq!(Table::new(&["id"]).to_string(), "none\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let fields = Fields::default().with("name", "a\u{1b}[31mb\nc");
        assert_eq!(fields.to_string(), "name  a\u{fffd}[31mb\u{fffd}c\n");
    }
}
