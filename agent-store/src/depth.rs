//! Limit on the nesting depth of JSON that must be readable again.

/// Depth up to which the parser, which guards its stack, accepts any text.
const SAFE_DEPTH: usize = 120;

/// Parses JSON text whose nesting depth exceeds [`SAFE_DEPTH`], to check that it can be read back.
///
/// # Errors
/// The errors of `read`.
pub(crate) fn reads_back<T, E>(json: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Result<(), E> {
    if depth(json) > SAFE_DEPTH { read(json).map(drop) } else { Ok(()) }
}

/// Returns the nesting depth of arrays and objects in JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        assert_eq!(depth(r#"{"a[[":[{}],"b":"{\"["}"#), 3);
        assert_eq!(depth("1"), 0);
    }
}
