//! The nearest spelling.

/// The known word that was most likely meant.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&lower, &known.to_lowercase());
    let best = known.iter().map(|known| (distance(known), *known)).min()?;
    let most = (word.chars().count().max(best.1.chars().count()) / 3).max(1);
    (best.0 <= most).then_some(best.1)
}

/// Words that are listed beside the nearest one, at most.
const MOST_LISTED: usize = 12;

/// Advice for an unknown word: the nearest known one, or all of them.
pub(super) fn advice(word: &str, known: &[&str], what: &str) -> Option<String> {
    if known.is_empty() {
        return None;
    }
    let mut all = known.to_vec();
    all.sort_unstable();
    let all = all.join(", ");
    Some(match nearest(word, known) {
        Some(near) if known.len() > MOST_LISTED => format!("did you mean '{near}'?"),
        Some(near) => format!("did you mean '{near}'? The {what} here: {all}"),
        None => format!("the {what} here: {all}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_seen_and_another_word_is_not() {
        let known = ["max_steps", "model", "name", "tools"];
        assert_eq!(nearest("max_step", &known), Some("max_steps"));
        assert_eq!(nearest("Tools", &known), Some("tools"));
        assert_eq!(nearest("nmae", &known), Some("name"));
        assert_eq!(nearest("wheels_of_steel", &known), None);
    }
}
