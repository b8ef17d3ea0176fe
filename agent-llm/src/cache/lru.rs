//! [`Lru`].

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

/// Values of bounded size together: what was not used for longest goes first.
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// By when they were last used.
    order: BTreeMap<u64, K>,
    uses: u64,
    bytes: usize,
}

struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K, V> Default for Lru<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), uses: 0, bytes: 0 }
    }
}

impl<K: Copy + Eq + Hash, V> Lru<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The bytes of all values together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The value, which is used now.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        self.order.remove(&entry.used);
        self.order.insert(self.uses, *key);
        entry.used = self.uses;
        Some(&entry.value)
    }

    /// The value, without a use of it.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Keeps a value of so many bytes, in the place of its predecessor, and no more than `most` bytes in all. A larger one is
    /// not kept.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize, most: usize) {
        self.remove(&key);
        if bytes > most {
            return;
        }
        while self.bytes + bytes > most {
            self.remove_oldest();
        }
        self.uses += 1;
        self.bytes += bytes;
        self.order.insert(self.uses, key);
        self.entries.insert(key, Entry { value, bytes, used: self.uses });
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }

    pub(crate) fn remove_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_first() {
            self.remove(&key);
        }
    }
}
