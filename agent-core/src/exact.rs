//! JSON numbers without rounding.
//!
//! A [`Value`] holds integers of 64 bits and floats. Any other number, such as an id of 23 digits or
//! an amount of 20 significant digits, becomes text with the digits as written, never another
//! number. Where the type of the receiver is known to be a number, the text is a number again:
//! [`from_value`] reads it into Rust types of enough bits, and tools of other programs receive a
//! number where their schema requires one.
//!
//! ```
//! use agent_core::exact;
//! use serde_json::json;
//!
//! let args = exact::from_str(r#"{"id": 12345678901234567890123, "share": 0.1, "n": 5}"#)?;
//! assert_eq!(args, json!({"id": "12345678901234567890123", "share": 0.1, "n": 5}));
//! assert_eq!(exact::from_value::<u128>(&args["id"])?, 12_345_678_901_234_567_890_123);
//! # Ok::<(), serde_json::Error>(())
//! ```

use serde::{
    Deserialize, Serialize,
    de::{
        Deserializer, Error as _, IgnoredAny, IntoDeserializer, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Result, Value, value::RawValue};

/// Number of significant digits up to which a decimal survives the conversion to a float and back.
const SAFE_DIGITS: usize = 15;

/// Parses JSON. A number that a [`Value`] would round becomes text with its digits.
///
/// # Errors
/// If the text is not JSON.
pub fn from_str(json: &str) -> Result<Value> {
    match quoted(json) {
        Some(quoted) => serde_json::from_str(&quoted),
        None => serde_json::from_str(json),
    }
}

/// Deserialises a [`Value`] like [`from_str`], for `#[serde(deserialize_with)]`. The deserialiser
/// must be one of JSON text.
///
/// # Errors
/// Errors of the deserialiser.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Value, D::Error> {
    from_str(Box::<RawValue>::deserialize(from)?.get()).map_err(D::Error::custom)
}

/// Converts a value to a Rust type, whose number fields may also be text of a
/// [long number](is_long_number).
///
/// # Errors
/// If the value does not match the type.
pub fn from_value<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T> {
    T::deserialize(value)
        .or_else(|error| if has_long_number(value) { T::deserialize(Exact(value)) } else { Err(error) })
}

/// Converts to a [`Value`]. A number that it would round becomes text with its digits.
///
/// # Errors
/// If the value cannot be written as JSON.
pub fn to_value<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).or_else(|_| from_str(&serde_json::to_string(value)?))
}

/// Returns true for the text of a JSON number that a [`Value`] would round: an integer of more than
/// 64 bits, or a decimal that no float represents.
///
/// ```
/// use agent_core::exact::is_long_number;
///
/// assert!(is_long_number("12345678901234567890123") && is_long_number("3.14159265358979323846"));
/// assert!(!is_long_number("18446744073709551615") && !is_long_number("0.1") && !is_long_number("1,5"));
/// ```
pub fn is_long_number(text: &str) -> bool {
    let is_short = text.len() <= SAFE_DIGITS && !text.contains(['e', 'E']);
    !is_short && is_number(text) && !is_exact(text)
}

/// Returns true if a [`Value`] holds every number of this JSON text without rounding.
pub fn is_lossless(json: &str) -> bool {
    quoted(json).is_none()
}

fn is_number(text: &str) -> bool {
    let is_closed = text.ends_with(|c: char| c.is_ascii_digit());
    is_closed && text.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) && {
        serde_json::from_str::<IgnoredAny>(text).is_ok()
    }
}

fn is_exact(number: &str) -> bool {
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok();
    }
    let float = number.parse::<f64>().ok().filter(|float| float.is_finite());
    float.is_some_and(|float| scaled(number) == scaled(&format!("{float:e}")))
}

/// Splits a number into its significant digits and the exponent of ten of the first of them.
fn scaled(number: &str) -> Option<(String, i64)> {
    let number = number.trim_start_matches('-').to_ascii_lowercase();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let skipped = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return Some((String::new(), 0));
    }
    let exponent = exponent.parse::<i64>().ok()?.checked_add(whole.len() as i64 - skipped as i64)?;
    Some((significant.to_owned(), exponent))
}

/// Rewrites JSON text so that each long number is a string of its digits. Returns `None` if there is
/// no such number.
fn quoted(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[start..].iter().take_while(|byte| is_part(byte)).count();
                if is_long_number(&json[start..at]) {
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

/// Returns true if the value has text of a [long number](is_long_number).
pub fn has_long_number(value: &Value) -> bool {
    match value {
        Value::String(text) => is_long_number(text),
        Value::Array(items) => items.iter().any(has_long_number),
        Value::Object(fields) => fields.values().any(has_long_number),
        _ => false,
    }
}

/// Deserialiser of a value in which a number may be text.
#[derive(Clone, Copy)]
struct Exact<'a>(&'a Value);

impl<'a> IntoDeserializer<'a, Error> for Exact<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'a> Exact<'a> {
    fn fields(
        fields: &'a serde_json::Map<String, Value>,
    ) -> MapDeserializer<'a, impl Iterator<Item = (&'a str, Self)>, Error> {
        MapDeserializer::new(fields.iter().map(|(name, value)| (name.as_str(), Self(value))))
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.0 {
                Value::String(text) if is_long_number(text) => {
                    serde_json::Deserializer::from_str(text).$method(visitor)
                }
                other => other.$method(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Exact<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Self))),
            Value::Object(fields) => visitor.visit_map(Self::fields(fields)),
            other => other.deserialize_any(visitor),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        match self.0 {
            // Raw JSON is a newtype to serde.
            other if name.starts_with('$') => other.deserialize_newtype_struct(name, visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.0 {
            Value::Object(fields) => {
                MapAccessDeserializer::new(Self::fields(fields)).deserialize_enum(name, variants, visitor)
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_kept_as_a_number_or_as_its_digits() {
        for (number, is_kept) in [
            ("0", true),
            ("-0.0", true),
            ("9007199254740993", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("-9223372036854775809", false),
            ("1000000000000000000000000", false),
            ("0.1", true),
            ("1.10", true),
            ("0.30000000000000004", true),
            ("1e22", true),
            ("123456789012345678.9", false),
            ("3.14159265358979323846", false),
            ("1e400", false),
            ("1e-400", false),
            ("1e99999999999999999999", false),
        ] {
            let value = from_str(&format!("[{number}]")).expect(number)[0].clone();
            assert_eq!(value.is_number(), is_kept, "{number}");
            if !is_kept {
                assert_eq!(value, number);
            }
        }
        for text in
            ["", "-", "1_000", "0x10", "12345678901234567890123 ", "012345678901234567890", "1,2345678901234567890"]
        {
            assert!(!is_long_number(text), "{text}");
        }
    }

    #[test]
    fn digits_in_texts_and_keys_stay_as_they_are() {
        let json = r#"{"12345678901234567890123": "a \" 12345678901234567890123", "n": [-12345678901234567890123]}"#;
        let value = from_str(json).expect("JSON");
        assert_eq!(value["12345678901234567890123"], "a \" 12345678901234567890123");
        assert_eq!(value["n"], json!(["-12345678901234567890123"]));
    }

    #[derive(Debug, Deserialize, PartialEq)]
    enum Amount {
        None,
        Of(i128),
        In { currency: String, units: Vec<u128> },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Account(u128);

    #[derive(Debug, Deserialize, PartialEq)]
    struct Transfer {
        to: Account,
        amounts: Vec<Amount>,
        rate: Option<f64>,
        note: String,
    }

    #[test]
    fn typed_values_get_every_digit() {
        let json = r#"{"to": 12345678901234567890123, "amounts": ["None", {"Of": -12345678901234567890123},
            {"In": {"currency": "CHF", "units": [1, 98765432109876543210]}}],
            "rate": 3.14159265358979323846, "note": "98765432109876543210"}"#;
        let read: Transfer = from_value(&from_str(json).expect("JSON")).expect("a transfer");
        let expected = Transfer {
            to: Account(12_345_678_901_234_567_890_123),
            amounts: vec![
                Amount::None,
                Amount::Of(-12_345_678_901_234_567_890_123),
                Amount::In { currency: "CHF".into(), units: vec![1, 98_765_432_109_876_543_210] },
            ],
            rate: Some(std::f64::consts::PI),
            note: "98765432109876543210".into(),
        };
        assert_eq!(read, expected);
        let too_large =
            from_str(r#"{"to": 1, "amounts": [], "rate": null, "note": 12345678901234567890}"#).expect("JSON");
        assert!(from_value::<Transfer>(&too_large).is_err(), "a number of 64 bits is no text");
        assert!(from_value::<u64>(&json!("12345678901234567890123")).is_err(), "it has more than 64 bits");
        assert!(from_value::<u64>(&json!("5")).is_err(), "a short number is not text");
    }

    #[test]
    fn a_result_of_more_than_64_bits_is_written_with_every_digit() {
        let value = to_value(&json_of(u128::MAX)).expect("JSON");
        assert_eq!(value, json!({"id": u128::MAX.to_string(), "n": 1}));
    }

    #[derive(Serialize)]
    struct Record {
        id: u128,
        n: u8,
    }

    fn json_of(id: u128) -> Record {
        Record { id, n: 1 }
    }

    proptest! {
        #[test]
        fn no_number_is_rounded(number in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?") {
            let value = from_str(&number).expect("JSON");
            match value {
                Value::String(text) => prop_assert_eq!(text, number),
                // A float may be written in scientific form.
                Value::Number(n) => prop_assert_eq!(scaled(&n.to_string()), scaled(&number)),
                other => prop_assert!(false, "{}", other),
            }
        }
    }
}
