//! Vectors in the providers' formats.

use agent_core::{Error, Result, Usage};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer, de};

use crate::{ProviderError, error::not_the_protocol, wire::surrogates::text_of};

/// Numbers of one vector: a list, or little-endian floats in base64.
#[derive(Debug, PartialEq)]
pub(super) struct Numbers(pub(super) Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumbersVisitor;

        impl<'de> de::Visitor<'de> for NumbersVisitor {
            type Value = Numbers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("numbers, or their bytes in base64")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Numbers, E> {
                let bytes = BASE64_STANDARD.decode(text).map_err(E::custom)?;
                let numbers = floats(&bytes).ok_or_else(|| E::custom("the bytes are not those of whole numbers"))?;
                if numbers.iter().any(|number| !number.is_finite()) {
                    return Err(E::custom("the bytes are not those of floats: the vector is in another encoding"));
                }
                Ok(Numbers(numbers))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Numbers, A::Error> {
                let mut numbers = Vec::with_capacity(seq.size_hint().unwrap_or(1_024));
                while let Some(number) = seq.next_element()? {
                    numbers.push(number);
                }
                Ok(Numbers(numbers))
            }
        }

        deserializer.deserialize_any(NumbersVisitor)
    }
}

/// Decodes 32-bit floats, or 64-bit floats where the data indicates them: some servers send their
/// native type.
fn floats(bytes: &[u8]) -> Option<Vec<f32>> {
    let (words, []) = bytes.as_chunks::<4>() else { return None };
    let (pairs, rest) = bytes.as_chunks::<8>();
    // A 64-bit number computed with 16 or 32 bits ends in zeros: read as 32-bit numbers, every
    // second one would be zero.
    let doubles = rest.is_empty() && pairs.len() > 1 && pairs.iter().all(|pair| pair[..3] == [0; 3]);
    Some(match doubles {
        true => pairs.iter().map(|pair| f64::from_le_bytes(*pair) as f32).collect(),
        false => words.iter().map(|word| f32::from_le_bytes(*word)).collect(),
    })
}

/// Decodes the answer in `body`.
///
/// # Errors
/// The provider's error, if the body reports one; [`Protocol`](agent_core::ErrorKind::Protocol) if
/// it is neither.
pub(crate) fn read<T: de::DeserializeOwned>(provider: &str, body: &[u8], what: &str) -> Result<T> {
    let text = text_of(body);
    let wrong = match serde_json::from_str(&text) {
        Ok(answer) => return Ok(answer),
        Err(wrong) => wrong,
    };
    // Some gateways send errors with a success status.
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(json) if json.get("error").is_some_and(|error| !error.is_null()) => {
            Err(ProviderError::from_json(&json).into_error(provider))
        }
        _ => Err(not_the_protocol(provider, &format!("{what} ({wrong})"), &text)),
    }
}

/// Returns the usage of one call of `tokens` tokens; zero if they are unknown.
pub(crate) fn used(tokens: Option<u64>) -> Usage {
    tokens.map(|tokens| Usage::new(tokens, 0)).unwrap_or_default()
}

/// Builds the error for vectors in a wrong order or number.
pub(super) fn misplaced(provider: &str, why: &str) -> Error {
    not_the_protocol(provider, "the answer's vectors are not those of the texts", why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(json: &str) -> Result<Vec<f32>, serde_json::Error> {
        serde_json::from_str::<Numbers>(json).map(|numbers| numbers.0)
    }

    fn encoded(bytes: impl IntoIterator<Item = u8>) -> String {
        format!("{:?}", BASE64_STANDARD.encode(bytes.into_iter().collect::<Vec<_>>()))
    }

    #[test]
    fn bytes_that_are_no_numbers_are_an_error() {
        assert!(numbers("\"AAA=\"").is_err(), "two bytes");
        assert!(numbers("\"%\"").is_err() && numbers("[\"1\"]").is_err() && numbers("{}").is_err());
        assert!(numbers("[]").expect("no numbers").is_empty());
        let signed = [1_i8, -1, 3, 4, 12, -128, -64, 127, 5, 6, 7, 8].map(i8::to_le_bytes).concat();
        assert!(numbers(&encoded(signed)).is_err(), "whole numbers of 8 bits are no floats");
    }

    proptest! {
        #[test]
        fn a_vector_is_the_same_as_a_list_and_in_base64(vector in prop::collection::vec(-1.0_f32..1.0, 1..40)) {
            let list = serde_json::to_string(&vector).expect("JSON");
            prop_assert_eq!(&numbers(&list).expect("a list"), &vector);
            let text = encoded(vector.iter().flat_map(|x| x.to_le_bytes()));
            prop_assert_eq!(&numbers(&text).expect("base64"), &vector);
        }

        #[test]
        fn doubles_of_floats_are_known_as_such(vector in prop::collection::vec(0.001_f32..1.0, 2..40)) {
            let text = encoded(vector.iter().flat_map(|x| f64::from(*x).to_le_bytes()));
            prop_assert_eq!(numbers(&text).expect("base64"), vector);
        }
    }
}
