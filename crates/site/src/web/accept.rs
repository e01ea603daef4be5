//! `Accept-Encoding`.

use domain::named;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

named! {
    /// A compressed form. The preferred one comes first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Encoding {
        Brotli = "br",
        Gzip = "gzip",
    }
}

impl Encoding {
    /// Suffix of its entity tag.
    pub(super) const fn tag_suffix(self) -> &'static str {
        match self {
            Encoding::Brotli => "-br",
            Encoding::Gzip => "-gz",
        }
    }
}

/// The first form that the client accepts; none means uncompressed.
pub(super) fn best<T>(
    request: &HeaderMap,
    mut forms: impl Iterator<Item = (Encoding, T)>,
) -> Option<(Encoding, T)> {
    forms.find(|(encoding, _)| accepts(request, encoding.name()))
}

/// Whether an encoding, or `*`, is listed with a weight above zero.
fn accepts(request: &HeaderMap, name: &str) -> bool {
    let lines = request.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
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

/// The `q` parameter; 1 if missing or malformed.
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
    fn an_encoding_is_accepted_if_listed_with_a_weight_above_zero() {
        let takes_brotli = |line: &str| {
            let mut request = HeaderMap::new();
            request.insert(ACCEPT_ENCODING, line.parse().unwrap());
            accepts(&request, "br")
        };
        for line in ["br", "gzip, BR", "gzip;q=1.0, br;q=0.1", "*", "*;q=0.5, gzip", "br;q=x"] {
            assert!(takes_brotli(line), "{line}");
        }
        for line in ["", "gzip", "br;q=0", "br; q=0.000, *", "brotli", "identity", "*;q=0"] {
            assert!(!takes_brotli(line), "{line}");
        }
        assert!(!accepts(&HeaderMap::new(), "br"), "without the header, the plain form is sent");
    }
}
