//! Integers that exceed 64 bits.

/// Number of digits up to which every integer fits into 64 bits.
const SAFE_DIGITS: usize = 18;

/// Rewrites JSON text so that each integer of more than 64 bits is a string of its digits, since a
/// float would change the number. Returns `None` if there is no such integer.
pub(super) fn quoted_integers(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[start..].iter().take_while(|byte| is_part(byte)).count();
                if is_too_large(&json[start..at]) {
                    out.extend([&json[copied..start], "\"", &json[start..at], "\""]);
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    (copied > 0).then(|| out + &json[copied..])
}

/// Returns the index after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_too_large(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() > SAFE_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
}
