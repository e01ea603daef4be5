//! Suggestions for misspelt names.

/// Levenshtein distance.
pub fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    // One row of the table: distances from the prefix so far to every prefix of `right`.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (seen, left_char) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = seen + 1;
        for (column, right_char) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(left_char != *right_char);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

/// The first of equal candidates.
pub fn nearest<T>(candidates: impl IntoIterator<Item = T>, cost: impl FnMut(&T) -> usize) -> Option<T> {
    candidates.into_iter().min_by_key(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("flaw", "lawn"), 2);
        assert_eq!(distance("http_adr", "http_addr"), 1);
        assert_eq!(distance("zähler", "zahler"), 1);
    }
}
