//! Matching of names against the catalogue.

/// Returns true if `rest` is a suffix that does not change the model: nothing, `-latest`, or a
/// version.
///
/// A version is a date in one of the providers' formats, or three digits: `-2025-08-07`,
/// `-20250929`, `-09-2025`, `-05-20`, `-0613`, `-2508`, `-001`, each after `-` or `@`. One or two
/// digits are not a version: `-5` is a newer model. AWS adds one with a colon: `-v1:0`, `-1:0`.
pub(super) fn is_version(rest: &str) -> bool {
    let rest = without_aws_version(rest);
    let Some(version) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    let digits: Vec<_> =
        version.split('-').map(|part| part.bytes().all(|b| b.is_ascii_digit()).then_some(part.len())).collect();
    matches!(version, "latest" | "default")
        || matches!(digits[..], [Some(3 | 4 | 8)] | [Some(4), Some(2), Some(2)] | [Some(2), Some(2 | 4)])
}

fn without_aws_version(rest: &str) -> &str {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_aws = |version: &str| {
        let parts = version.strip_prefix('v').unwrap_or(version).split_once(':');
        parts.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    rest.rsplit_once('-').filter(|(_, version)| is_aws(version)).map_or(rest, |(before, _)| before)
}

/// Matches `name` against a model's name or alias `known`, which may end with the wildcard `*`.
/// Returns the length of the match, or `None`.
pub(super) fn fits(known: &str, name: &str) -> Option<usize> {
    match known.strip_suffix('*') {
        Some(start) => name.starts_with(start).then_some(start.len()),
        None => name.strip_prefix(known).filter(|rest| is_version(rest)).map(|_| known.len()),
    }
}

/// Extracts Anthropic's model name from Amazon Bedrock's, which may be an ARN:
/// `us.anthropic.claude-opus-4-6-v1:0`.
pub(super) fn on_bedrock(name: &str) -> Option<&str> {
    let (_, own) =
        name.split_once("anthropic.claude-").map(|(before, _)| name.split_at(before.len() + "anthropic.".len()))?;
    let own = own.split(':').next().unwrap_or(own);
    let is_revision = |end: &str| !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit());
    Some(own.rsplit_once("-v").filter(|(_, end)| is_revision(end)).map_or(own, |(own, _)| own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_version_is_the_same_model_and_another_number_is_not() {
        for version in [
            "",
            "-latest",
            "-2025-08-07",
            "-20250929",
            "@20250929",
            "-09-2025",
            "-05-20",
            "-0613",
            "-001",
            "-v1:0",
            "-1:0",
            "-20250929-v1:0",
            "@default",
        ] {
            assert!(is_version(version), "{version}");
        }
        for other in [
            "-mini",
            ".1",
            "-5",
            "-4-1",
            "-5-20250929",
            "-2025-08-07-mini",
            "5",
            "-",
            "--",
            "-preview",
            "-12345",
            "-v1",
            ":0",
            "-v:0",
            "-8b:0",
            "-mini-v1:0",
        ] {
            assert!(!is_version(other), "{other}");
        }
    }

    #[test]
    fn a_name_of_bedrock_holds_anthropics_own() {
        for (name, own) in [
            ("anthropic.claude-3-haiku-20240307-v1:0", Some("claude-3-haiku-20240307")),
            ("us.anthropic.claude-opus-4-6-v1", Some("claude-opus-4-6")),
            ("global.anthropic.claude-sonnet-5", Some("claude-sonnet-5")),
            (
                "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1:0",
                Some("claude-opus-4-6"),
            ),
            ("us.amazon.nova-pro-v1:0", None),
            ("claude-opus-4-6", None),
        ] {
            assert_eq!(on_bedrock(name), own, "{name}");
        }
    }

    #[test]
    fn a_pattern_fits_whatever_begins_like_it() {
        assert_eq!(fits("qwen*", "qwen3-coder:30b"), Some(4));
        assert_eq!((fits("gpt-5", "gpt-5-mini"), fits("gpt-5", "gpt-5-2025-08-07")), (None, Some(5)));
    }
}
