//! Counts keyed by the memory address of their content.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use agent_core::{Message, ToolSpecs};

/// Address of the content; `None` for empty content, which has no unique address.
pub(super) type Address = Option<usize>;

/// Cache with two generations: entries move to the young one on use; when it is full the old one is
/// dropped.
pub(super) struct Kept {
    half: usize,
    young: Generation,
    old: Generation,
    /// Approximate size of text that the young generation keeps alive, in bytes.
    weight: usize,
}

type Generation = HashMap<usize, Count, BuildHasherDefault<AddressHasher>>;

struct Count {
    tokens: u64,
    /// Held, never read, so that the address is not reused.
    _content: Alive,
}

/// Content whose address is a key.
#[expect(dead_code, reason = "held so that nothing else gets the address")]
pub(super) enum Alive {
    Message(Message),
    Tools(ToolSpecs),
}

impl Kept {
    pub(super) fn new(limit: usize) -> Self {
        Self { half: limit / 2, young: Generation::default(), old: Generation::default(), weight: 0 }
    }

    pub(super) fn get(&mut self, address: Address) -> Option<u64> {
        let address = address?;
        if let Some(count) = self.young.get(&address) {
            return Some(count.tokens);
        }
        let count = self.old.remove(&address)?;
        let tokens = count.tokens;
        self.add(address, count);
        Some(tokens)
    }

    pub(super) fn put(&mut self, address: Address, tokens: u64, content: Alive) {
        if let Some(address) = address {
            self.add(address, Count { tokens, _content: content });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    fn add(&mut self, address: usize, count: Count) {
        self.weight += 4 * usize::try_from(count.tokens).unwrap_or(usize::MAX / 8);
        if self.weight > self.half {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.young.insert(address, count);
    }
}

/// Mixes an address over all bits; the standard hasher resists chosen keys, but takes three times
/// as long.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
