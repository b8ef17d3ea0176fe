//! Name patterns in which `*` matches any text.

/// Returns true if the name matches the pattern.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = name.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    let middle = pieces.iter().try_fold(rest, |rest, piece| Some(&rest[rest.find(piece)? + piece.len()..]));
    middle.is_some_and(|rest| rest.ends_with(last))
}

/// Returns the patterns of the text that may follow `prefix` in a matching name.
#[cfg(feature = "plugins")]
pub(crate) fn rests<'a>(pattern: &'a str, prefix: &str) -> Vec<&'a str> {
    let cuts = (0..=pattern.len()).filter(|at| pattern.is_char_boundary(*at));
    let cuts = cuts.filter(|at| fits(&pattern[..*at], prefix));
    // A star may match the end of the prefix and more.
    cuts.map(|at| if pattern[..at].ends_with('*') { &pattern[at - 1..] } else { &pattern[at..] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_all_else_for_itself() {
        for (pattern, name) in
            [("*", "a"), ("a*", "a"), ("*_b", "a_b"), ("a*c*e", "abcde"), ("read", "read"), ("*", "")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("read", "reader"), ("a*a", "a"), ("*_b", "a_bc"), ("", "a"), ("a*c*e", "aecd")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[cfg(feature = "plugins")]
    proptest::proptest! {
        #[test]
        fn what_follows_a_prefix_fits_a_rest_if_the_whole_fits_the_pattern(
            pattern in "[ab*]{0,6}", prefix in "[ab]{0,3}", rest in "[ab]{0,4}",
        ) {
            let by_rests = rests(&pattern, &prefix).iter().any(|pattern| fits(pattern, &rest));
            proptest::prop_assert_eq!(by_rests, fits(&pattern, &format!("{prefix}{rest}")));
        }
    }
}
