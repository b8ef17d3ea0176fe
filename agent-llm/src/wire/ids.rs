//! Names for what came without one, or with one that another provider does not take.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// The id of the call at `at`, if its server gave it none: the same each time that a recorded answer is read.
pub(crate) fn call_id(response: &str, at: usize) -> String {
    if response.is_empty() { format!("call_{at}") } else { format!("call_{response}_{at}") }
}

/// The tool of a call that names none. It is answered like any tool that is unknown, and providers refuse an empty name.
pub(crate) const NAMELESS: &str = "unknown";

/// An id of letters, digits, `_` and `-`. Other characters stand as their bytes' numbers, so that two ids stay two.
pub(crate) fn plain_id(id: &str) -> Cow<'_, str> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(is_taken) {
        return Cow::Borrowed(id);
    }
    let mut mapped = String::from("id_");
    for byte in id.bytes() {
        if is_taken(byte) {
            mapped.push(char::from(byte));
        } else {
            mapped += &format!("_{byte:02x}");
        }
    }
    Cow::Owned(mapped)
}

/// An id of exactly `length` letters and digits, at most 32. Another is mapped to one: always the same, and two ids to two as
/// far as so few characters can.
pub(crate) fn short_id(id: &str, length: usize) -> Cow<'_, str> {
    const TAKEN: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let digest = Sha256::digest(id);
    Cow::Owned(digest.iter().take(length).map(|byte| char::from(TAKEN[usize::from(*byte) % TAKEN.len()])).collect())
}
