//! The page with the measured figures, `docs/benchmarks.md`: a run replaces what stands between two markers.

use crate::error::BenchError;

const BEGIN: &str = "<!-- written by make bench: begin -->\n";
const END: &str = "<!-- written by make bench: end -->\n";

/// The page with `figures` between its markers.
pub fn with_figures(page: &str, figures: &str) -> Result<String, BenchError> {
    let parts = page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.ok_or_else(|| {
        BenchError::Page(format!("the page lacks the lines {} and {}", BEGIN.trim_end(), END.trim_end()))
    })?;
    Ok(format!("{head}{BEGIN}\n{figures}\n{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_what_stands_between_the_markers_and_nothing_else() {
        let page = format!("# Title\n\n{BEGIN}old\n{END}\nEnd.\n");
        let once = with_figures(&page, "new\n").unwrap();
        assert_eq!(once, format!("# Title\n\n{BEGIN}\nnew\n\n{END}\nEnd.\n"));
        assert_eq!(with_figures(&once, "new\n").unwrap(), once);
        assert!(with_figures("no markers", "new").is_err());
    }
}
