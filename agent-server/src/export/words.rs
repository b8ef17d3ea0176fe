//! Safe text and times for display.

use std::borrow::Cow;

/// Removes control characters and bidirectional overrides, which could move the cursor, change
/// colours or reverse the text: output of models and tools is not trusted.
pub fn plain(text: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(acts) { Cow::Owned(text.replace(acts, "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// Formats a time in milliseconds since 1970 as `2026-11-25 16:20:01`, UTC.
pub fn moment(ms: u64) -> String {
    let (days, seconds) = (ms / 86_400_000, ms / 1_000 % 86_400);
    // Days since 0000-03-01, in eras of 400 years: calendar arithmetic without a table.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_cannot_act_where_it_is_shown() {
        assert_eq!(plain("a\x1b[2Jb\rc\u{202E}d\n\te"), "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d\n\te");
    }

    #[test]
    fn a_moment_is_a_date_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00:00");
        assert_eq!(moment(951_782_399_000), "2000-02-28 23:59:59");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(moment(1_798_761_599_999), "2026-12-31 23:59:59");
    }
}
