//! Reading JSON in one pass.
//!
//! Answers and events are read at every step and every chunk, and what is not understood of them is kept as it came.
//! serde_json reads such values twice: once to find where they end, and once for what is in them. The [`Cursor`] is a
//! deserializer that knows where it is, so that a value and its text are read together ([`Kept`]), and that has only one
//! kind of error: it gives up. Then serde_json reads the same text again, and either reads it or says what is wrong with it.
//! So the cursor decides nothing: it must only be right about what it does read.

mod cursor;
mod deserializer;
#[cfg(test)]
mod tests;

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use self::cursor::Cursor;

/// What serde_json's `RawValue` calls itself when it asks for the text of a value. If it ever asks under another name, the
/// cursor gives up and all is as right as before, but slower: a test says so.
const RAW: &str = "$serde_json::private::RawValue";

/// What [`Kept`] calls itself when it asks for a value and its text.
const KEPT: &str = "$kept";

/// Reads `text`.
///
/// # Errors
/// Those of [`serde_json::from_str`], which decides.
pub(crate) fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    fast(text).or_else(|GaveUp| serde_json::from_str(text))
}

/// Reads `text`, without serde_json's help.
fn fast<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, GaveUp> {
    let mut cursor = Cursor::new(text);
    let value = T::deserialize(&mut cursor)?;
    // Nothing but white space may follow.
    if cursor.place() == text.len() { Ok(value) } else { Err(GaveUp) }
}

/// Reads a JSON string to the end of `text`, without one of its own between.
///
/// # Errors
/// If `json` is no string; `text` is as it was then.
pub(crate) fn push_string(json: &str, text: &mut String) -> serde_json::Result<()> {
    let before = text.len();
    text.reserve_exact(json.len()); // the text of a call's arguments: it is kept
    let mut cursor = Cursor::new(json);
    let read = cursor.take(b'"').and_then(|()| cursor.unescape(text));
    if read.is_err() || cursor.place() != json.len() {
        text.truncate(before);
        text.push_str(&serde_json::from_str::<String>(json)?);
    }
    Ok(())
}

/// A value, and its text.
#[derive(Debug)]
pub(crate) struct Kept<'a, T> {
    /// The value; why the text has another form, if it has.
    pub(crate) value: serde_json::Result<T>,
    pub(crate) json: &'a RawValue,
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Kept<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Both<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Both<T> {
            type Value = Kept<'de, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            /// The cursor gives the value, and then its text.
            #[inline]
            fn visit_seq<A: SeqAccess<'de>>(self, mut both: A) -> Result<Self::Value, A::Error> {
                let missing = || de::Error::custom("a value and its text");
                let value = both.next_element()?.ok_or_else(missing)?;
                let json = both.next_element()?.ok_or_else(missing)?;
                Ok(Kept { value: Ok(value), json })
            }

            /// serde_json gives the text alone.
            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                let json = <&RawValue>::deserialize(deserializer)?;
                Ok(Kept { value: serde_json::from_str(json.get()), json })
            }
        }

        deserializer.deserialize_newtype_struct(KEPT, Both(PhantomData))
    }
}

/// The reader gave up: the text is no JSON, not what is wanted, or beyond what it understands.
#[derive(Debug)]
struct GaveUp;

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it has another form")
    }
}

impl std::error::Error for GaveUp {}

impl de::Error for GaveUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}
