//! The cursor as a deserializer of serde's.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{GaveUp, KEPT, RAW, cursor::Cursor};

impl<'de> Deserializer<'de> for &mut Cursor<'de> {
    type Error = GaveUp;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GaveUp> {
        match self.peek() {
            b'"' => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            b'{' => {
                self.enter(b'{')?;
                let value = visitor.visit_map(Items { cursor: self, first: true })?;
                self.leave(b'}').map(|()| value)
            }
            b'[' => {
                self.enter(b'[')?;
                let value = visitor.visit_seq(Items { cursor: self, first: true })?;
                self.leave(b']').map(|()| value)
            }
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'-' => visitor.visit_i64(whole(self.number()?)?),
            _ => visitor.visit_u64(whole(self.number()?)?),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GaveUp> {
        match self.peek() {
            b'n' => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, GaveUp> {
        match name {
            RAW => visitor.visit_map(RawText(self.skip()?)),
            KEPT => {
                let start = self.place();
                visitor.visit_seq(KeptValue { cursor: self, start, read: false })
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GaveUp> {
        self.skip().and_then(|_| visitor.visit_unit())
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GaveUp> {
        match self.string()? {
            Cow::Borrowed(name) => visitor.visit_enum(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => visitor.visit_enum(StringDeserializer::new(name)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// A number without a fraction. Others are rare where a type says what to expect.
fn whole<T: std::str::FromStr>(number: &str) -> Result<T, GaveUp> {
    // serde_json reads -0 as a float.
    if number == "-0" { Err(GaveUp) } else { number.parse().map_err(|_| GaveUp) }
}

/// The fields of an object, or the items of a list.
struct Items<'r, 'de> {
    cursor: &'r mut Cursor<'de>,
    first: bool,
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = GaveUp;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, GaveUp> {
        if !self.cursor.next_item(std::mem::take(&mut self.first), b'}')? {
            return Ok(None);
        }
        if self.cursor.peek() != b'"' {
            return Err(GaveUp);
        }
        seed.deserialize(&mut *self.cursor).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, GaveUp> {
        self.cursor.take(b':')?;
        seed.deserialize(&mut *self.cursor)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = GaveUp;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, GaveUp> {
        match self.cursor.next_item(std::mem::take(&mut self.first), b']')? {
            true => seed.deserialize(&mut *self.cursor).map(Some),
            false => Ok(None),
        }
    }
}

/// The text of a value, in the form in which serde_json's `RawValue` takes it: a field with a name of its own.
struct RawText<'de>(&'de str);

impl<'de> MapAccess<'de> for RawText<'de> {
    type Error = GaveUp;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, GaveUp> {
        seed.deserialize(BorrowedStrDeserializer::new(RAW)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, GaveUp> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0))
    }
}

/// A value, and then its text.
struct KeptValue<'r, 'de> {
    cursor: &'r mut Cursor<'de>,
    start: usize,
    read: bool,
}

impl<'de> SeqAccess<'de> for KeptValue<'_, 'de> {
    type Error = GaveUp;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, GaveUp> {
        if !std::mem::replace(&mut self.read, true) {
            return seed.deserialize(&mut *self.cursor).map(Some);
        }
        seed.deserialize(TextOf(self.cursor.since(self.start))).map(Some)
    }
}

/// The text of a value that was read already.
struct TextOf<'de>(&'de str);

impl<'de> Deserializer<'de> for TextOf<'de> {
    type Error = GaveUp;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GaveUp> {
        visitor.visit_map(RawText(self.0))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier option newtype_struct enum ignored_any
    }
}
