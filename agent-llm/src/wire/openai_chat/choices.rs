//! The choices of an answer: the first is the answer, others are told beside it.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};

/// A list of which the first item that says it is number 0 matters most.
#[derive(Debug)]
pub(super) struct Choices<T> {
    pub(super) first: Option<T>,
    pub(super) others: Vec<T>,
}

/// Something that may be numbered.
pub(super) trait Numbered {
    /// Its number; nothing is as good as 0.
    fn number(&self) -> u64;
}

impl<T> Default for Choices<T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new() }
    }
}

impl<'de, T: Deserialize<'de> + Numbered> Deserialize<'de> for Choices<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChoicesVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + Numbered> Visitor<'de> for ChoicesVisitor<T> {
            type Value = Choices<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut choices = Choices::default();
                while let Some(item) = items.next_element::<T>()? {
                    if choices.first.is_none() && item.number() == 0 {
                        choices.first = Some(item);
                    } else {
                        choices.others.push(item);
                    }
                }
                Ok(choices)
            }
        }

        deserializer.deserialize_seq(ChoicesVisitor(PhantomData))
    }
}
