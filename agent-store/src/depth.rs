//! How deep JSON may be nested that is to be read back.

/// Text that is nested deeper than this may be refused by the parser, which guards its stack.
const SAFE_DEPTH: usize = 120;

/// Reads JSON text, if it is nested so deeply that it may be refused.
///
/// # Errors
/// Those of `read`.
pub(crate) fn reads_back<T, E>(json: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Result<(), E> {
    if depth(json) > SAFE_DEPTH { read(json).map(drop) } else { Ok(()) }
}

/// How deep arrays and objects are nested in JSON text.
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
