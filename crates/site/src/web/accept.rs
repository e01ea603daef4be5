//! `Accept-Encoding`: which compressed form of a file its reader can take.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// How a form is compressed. The better one stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    /// As it is named in headers.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Encoding::Brotli => "br",
            Encoding::Gzip => "gzip",
        }
    }

    /// What tells its tag from that of the plain form.
    pub(super) const fn tag_ending(self) -> &'static str {
        match self {
            Encoding::Brotli => "-br",
            Encoding::Gzip => "-gz",
        }
    }
}

/// The first of these forms that the reader takes. None: the plain one, which everybody takes.
pub(super) fn best<T>(
    params: &HeaderMap,
    mut forms: impl Iterator<Item = (Encoding, T)>,
) -> Option<(Encoding, T)> {
    forms.find(|(encoding, _)| takes(params, encoding.name()))
}

/// Whether an encoding is named, or `*` in its stead, and not with a weight of zero.
fn takes(params: &HeaderMap, name: &str) -> bool {
    let lines = params.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut by_star = false;
    for item in lines.flat_map(|line| line.split(',')) {
        let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
        let coding = coding.trim();
        let is_wanted = weight_of(parameters) > 0.0;
        if coding.eq_ignore_ascii_case(name) {
            return is_wanted;
        }
        by_star |= coding == "*" && is_wanted;
    }
    by_star
}

/// The weight among an item's parameters; one where none can be read.
fn weight_of(parameters: &str) -> f32 {
    let named = parameters.split(';').filter_map(|pair| pair.split_once('='));
    let weight = named
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .find_map(|(_, weight)| weight.trim().parse().ok());
    weight.unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_taken_if_it_is_named_and_not_weighed_as_nothing() {
        let takes_brotli = |line: &str| {
            let mut params = HeaderMap::new();
            params.insert(ACCEPT_ENCODING, line.parse().unwrap());
            takes(&params, "br")
        };
        for line in ["br", "gzip, BR", "gzip;q=1.0, br;q=0.1", "*", "*;q=0.5, gzip", "br;q=x"] {
            assert!(takes_brotli(line), "{line}");
        }
        for line in ["", "gzip", "br;q=0", "br; q=0.000, *", "brotli", "identity", "*;q=0"] {
            assert!(!takes_brotli(line), "{line}");
        }
        assert!(!takes(&HeaderMap::new(), "br"), "who says nothing gets the plain form");
    }
}
