//! Generated and mapped ids and names of calls.

use std::borrow::Cow;

use agent_core::Block;
use sha2::{Digest, Sha256};

/// Returns the id of the call at `at`, if its server assigned none: deterministic, so that a
/// recorded answer always decodes equally.
pub(crate) fn call_id(response: &str, at: usize) -> String {
    if response.is_empty() { format!("call_{at}") } else { format!("call_{response}_{at}") }
}

/// Name of a nameless call. It is answered like a call of any unknown tool, and providers reject an
/// empty name.
pub(crate) const NAMELESS: &str = "unknown";

/// Assigns ids and names to the calls in `blocks` that have none; `before` is the number of earlier
/// calls. Returns true if there were any: then results will name ids that the provider's own JSON
/// does not have.
pub(crate) fn name_calls(blocks: &mut [Block], response: &str, before: usize) -> bool {
    let calls = blocks.iter_mut().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    });
    let mut is_mended = false;
    for (at, call) in calls.enumerate() {
        if call.id.is_empty() {
            (call.id, is_mended) = (call_id(response, before + at).into(), true);
        }
        if call.name.is_empty() {
            (call.name, is_mended) = (NAMELESS.into(), true);
        }
    }
    is_mended
}

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
