//! Large strings, stored once by content.
//!
//! Entries become large because of strings in them: a file that a tool read, an image, a whole
//! history that contains both again. A string of sufficient length is therefore cut out of the
//! body's JSON text, which keeps an empty string in its place, and stored under the hash of its
//! bytes, shared by all entries and sessions. Bytes are moved without interpretation, so that
//! joining restores the original text exactly.

use agent_core::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

/// Default size in bytes from which strings are stored by content.
pub(crate) const BLOB_BYTES: usize = 4096;

/// Content of a string of a body in JSON encoding, without its quotes.
pub(crate) struct Blob {
    /// Byte offset of the string in the remaining body.
    pub(crate) at: usize,
    pub(crate) hash: [u8; 32],
    pub(crate) text: String,
}

/// Cuts strings of at least `least` bytes out of JSON text.
pub(crate) fn split(body: String, least: usize) -> (String, Vec<Blob>) {
    if body.len() < least {
        return (body, Vec::new());
    }
    let (mut rest, mut blobs) = (String::new(), Vec::new());
    let (mut from, mut opened, mut escaped) = (0, None, false);
    for (at, byte) in body.bytes().enumerate() {
        match (byte, opened) {
            _ if escaped => escaped = false,
            (b'\\', _) => escaped = true,
            (b'"', None) => opened = Some(at + 1),
            (b'"', Some(start)) => {
                opened = None;
                if at - start >= least {
                    rest.push_str(&body[from..start]);
                    let text = body[start..at].to_owned();
                    blobs.push(Blob { at: rest.len(), hash: Sha256::digest(&text).into(), text });
                    from = at;
                }
            }
            _ => {}
        }
    }
    if blobs.is_empty() {
        return (body, blobs);
    }
    rest.push_str(&body[from..]);
    (rest, blobs)
}

/// Reverses [`split`]: inserts texts at their offsets, which are in ascending order.
///
/// # Errors
/// [`ErrorKind::Store`] if an offset lies outside `body`.
pub(crate) fn join<'a>(body: String, blobs: impl Iterator<Item = (usize, &'a str)>) -> Result<String> {
    let (mut whole, mut from) = (String::new(), 0);
    for (at, text) in blobs {
        let damaged = || Error::new(ErrorKind::Store, "an entry does not fit its large strings: the store is damaged");
        whole.push_str(body.get(from..at).ok_or_else(damaged)?);
        whole.push_str(text);
        from = at;
    }
    if whole.is_empty() {
        return Ok(body);
    }
    whole.push_str(&body[from..]);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn put_together(body: String, blobs: &[Blob]) -> String {
        join(body, blobs.iter().map(|blob| (blob.at, &*blob.text))).expect("fits")
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i64>().prop_map(Value::from), ".{0,30}".prop_map(Value::from)];
        leaf.prop_recursive(4, 30, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,20}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_put_together_is_what_was_taken_apart(value in value(), least in 1_usize..20) {
            let text = value.to_string();
            let (rest, blobs) = split(text.clone(), least);
            prop_assert!(blobs.iter().all(|blob| blob.text.len() >= least));
            prop_assert!(serde_json::from_str::<Value>(&rest).is_ok() || value.is_object(), "it stays JSON: {}", rest);
            prop_assert_eq!(put_together(rest, &blobs), text);
        }
    }

    #[test]
    fn the_same_content_has_the_same_hash_wherever_it_stands() {
        let large = "x\"y".repeat(10);
        let (rest, blobs) = split(json!({"a": [large, "small"], "b": large}).to_string(), 20);
        assert_eq!(rest, r#"{"a":["","small"],"b":""}"#);
        assert_eq!(blobs.len(), 2);
        assert_eq!(blobs[0].hash, blobs[1].hash);
    }

    #[test]
    fn a_place_that_is_not_there_is_damage() {
        assert_eq!(join("ab".into(), [(7, "x")].into_iter()).expect_err("no place").kind(), ErrorKind::Store);
        assert_eq!(join("é".into(), [(1, "x")].into_iter()).expect_err("no place").kind(), ErrorKind::Store);
    }
}
