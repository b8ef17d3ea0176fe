//! Lenient, borrowing deserialisation of providers' JSON, where leniency loses nothing.

use std::{borrow::Cow, fmt, ops::Deref};

#[cfg(feature = "requests")]
use agent_core::Part;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Text that is borrowed if possible (serde copies an `Option<Cow<str>>`). Numbers become their
/// digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Str<'a>(pub(crate) Cow<'a, str>);

impl Str<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Returns the text of a field; empty if unset.
pub(crate) fn text<'s>(said: &'s Option<Str<'_>>) -> &'s str {
    said.as_ref().map_or("", |said| &said.0)
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;

        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(text.to_owned())))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(number.to_string())))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(number.to_string())))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Str(Cow::Owned(number.to_string())))
            }
        }

        deserializer.deserialize_any(StrVisitor)
    }
}

impl Serialize for Str<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A text, or a list of raw parts.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<&'a RawValue>),
}

#[cfg(feature = "requests")]
impl Content<'_> {
    /// Converts to parts, decoding each with `read`.
    pub(crate) fn parts(self, read: impl FnMut(&RawValue) -> Part) -> Vec<Part> {
        match self {
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts.into_iter().map(read).collect(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = items.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }

            /// No known provider sends an object; the raw message keeps it.
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::Parts(Vec::new()))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

/// A count. Invalid values become 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

/// Far beyond any token count, and small enough that sums do not overflow.
const MOST: u64 = 1 << 40;

/// Returns the count at a JSON Pointer.
pub(crate) fn count(said: &Value, place: &str) -> u64 {
    let json = said.pointer(place).unwrap_or(&Value::Null).to_string();
    serde_json::from_str(&json).map_or(0, |Count(count)| count)
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        // A cast from a float saturates: NaN and negative numbers become 0.
        let count = json.parse().unwrap_or_else(|_| json.parse::<f64>().map_or(0, |n| n as u64));
        Ok(Self(if count <= MOST { count } else { 0 }))
    }
}

/// Decodes JSON that is also kept raw: JSON of another shape counts as missing.
pub(crate) fn lenient<'a, T: Deserialize<'a> + Default>(json: &'a RawValue) -> T {
    serde_json::from_str(json.get()).unwrap_or_default()
}

/// Returns the `type` field of the JSON; empty if it has none.
pub(crate) fn kind(json: &RawValue) -> String {
    lenient::<Typed<'_>>(json).kind.unwrap_or_default().0.into_owned()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Typed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
}

/// Returns the text of a field, if not empty.
pub(crate) fn owned(said: Option<Str<'_>>) -> Option<String> {
    said.filter(|said| !said.is_empty()).map(|said| said.0.into_owned())
}

/// Decodes an optional part.
pub(crate) fn part<'a, T: Deserialize<'a> + Default>(json: Option<&'a RawValue>) -> T {
    json.map(lenient).unwrap_or_default()
}

/// Passes each raw item of a list to `take`.
///
/// # Errors
/// If the JSON is not a list; the errors of `take`.
pub(crate) fn each<'a>(
    list: &'a RawValue,
    take: impl FnMut(&'a RawValue) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    struct Items<F>(F);

    impl<'de, F: FnMut(&'de RawValue) -> serde_json::Result<()>> Visitor<'de> for Items<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                (self.0)(item).map_err(A::Error::custom)?;
            }
            Ok(())
        }
    }

    serde_json::Deserializer::from_str(list.get()).deserialize_seq(Items(take))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_escapes_is_borrowed() {
        let read = |json| serde_json::from_str::<Str<'_>>(json).expect("a text").0;
        assert!(matches!(read(r#""plain""#), Cow::Borrowed("plain")));
        assert_eq!(read(r#""a\nb""#), "a\nb");
        assert_eq!(read("429"), "429");
    }

    #[test]
    fn what_is_no_count_is_zero() {
        let json = r#"[7, 7.9, -3, -1.5, null, "x", {}, [], true, 1e400]"#;
        let counts: Vec<Count> = serde_json::from_str(json).expect("counts");
        assert_eq!(counts.iter().map(|c| c.0).collect::<Vec<_>>(), [7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
