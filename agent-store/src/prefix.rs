//! Names with a common prefix, as a range for an index.

/// Returns the smallest byte string above all texts that begin with `prefix`.
pub(crate) fn above(prefix: &str) -> Vec<u8> {
    let mut above = prefix.as_bytes().to_vec();
    match above.last_mut() {
        Some(last) => *last += 1, // UTF-8 never contains the byte 0xff
        None => above.push(u8::MAX),
    }
    above
}

#[cfg(test)]
mod tests {
    use super::above;

    #[test]
    fn what_begins_so_is_below_and_what_comes_after_is_not() {
        for (prefix, begins, after) in
            [("", "\u{10ffff}", None), ("a/", "a/\u{10ffff}", Some("a0")), ("é", "éz", Some("ê"))]
        {
            let above = above(prefix);
            assert!(
                begins.as_bytes() < &above[..] && after.is_none_or(|after| after.as_bytes() >= &above[..]),
                "{prefix}"
            );
        }
    }
}
