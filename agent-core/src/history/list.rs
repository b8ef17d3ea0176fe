//! A list of messages that is cheap to share, cheap to append to, and remembers how a wire wrote each part of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Message;

/// Messages per sealed segment: large enough that a long history is few copies, small enough that the open tail is cheap, of
/// which each message is memory of its own.
const SEGMENT: usize = 8;

/// Names one way of writing messages: a wire, its settings, and what it replays verbatim.
///
/// Two encoders that would write any message differently must have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WireKey(u64);

impl WireKey {
    /// A key from anything that can be hashed.
    pub fn new(of: &impl std::hash::Hash) -> Self {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        Self(BuildHasherDefault::<DefaultHasher>::default().hash_one(of))
    }
}

/// What one wire wrote for a message or a segment. Another wire's bytes are not kept beside it: runs rarely change wires.
#[derive(Debug, Default)]
struct Written(Mutex<Option<(WireKey, Box<[u8]>)>>);

impl Written {
    /// Appends what is kept under `key` to `out`; false if nothing is.
    fn copy_to(&self, key: WireKey, out: &mut Vec<u8>) -> bool {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = slot.as_ref().filter(|(k, _)| *k == key);
        kept.inspect(|(_, bytes)| out.extend_from_slice(bytes)).is_some()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |(_, bytes)| bytes.len())
    }

    fn set(&self, key: WireKey, bytes: &[u8]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, bytes.into()));
    }

    fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[derive(Debug)]
struct Item {
    message: Message,
    written: Written,
}

impl Item {
    fn new(message: Message) -> Arc<Self> {
        Arc::new(Self { message, written: Written::default() })
    }
}

#[derive(Debug, Default)]
struct Segment {
    items: Vec<Arc<Item>>,
    written: Written,
    total: Mutex<Total>,
}

/// What one measure made of the first so many messages together.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    key: Option<WireKey>,
    of: usize,
    sum: u64,
}

impl Clone for Segment {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), total: Mutex::new(*self.lock_total()), ..Self::default() }
    }
}

impl Segment {
    /// The same messages, of which those from `at` on must be written again.
    fn unwritten_from(&self, at: usize) -> Self {
        let (before, after) = self.items.split_at(at);
        let after = after.iter().map(|item| Item::new(item.message.clone()));
        Self { items: before.iter().cloned().chain(after).collect(), ..Self::default() }
    }

    fn total(&self, key: WireKey, measure: &dyn Fn(&Message) -> u64) -> u64 {
        let mut total = self.lock_total();
        if total.key != Some(key) {
            *total = Total { key: Some(key), ..Total::default() };
        }
        total.sum += self.items[total.of..].iter().map(|item| measure(&item.message)).sum::<u64>();
        total.of = self.items.len();
        total.sum
    }

    fn lock_total(&self) -> MutexGuard<'_, Total> {
        self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a list had come.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    len: usize,
    newest: Option<Arc<Item>>,
}

/// Appending copies at most one segment of pointers; cloning is two reference counts.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    sealed: Arc<Vec<Arc<Segment>>>,
    tail: Arc<Segment>,
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.sealed.len() * SEGMENT + self.tail.items.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Message> {
        self.item(at).map(|item| &item.message)
    }

    pub(super) fn mark(&self) -> Mark {
        let len = self.len();
        Mark { len, newest: len.checked_sub(1).and_then(|at| self.item(at)).cloned() }
    }

    /// The messages after those of the list of `mark`, if this one is made of it by pushes.
    pub(super) fn since(&self, mark: &Mark) -> Option<impl DoubleEndedIterator<Item = &Message> + Clone> {
        Some((self.shared(mark)?..self.len()).filter_map(|at| self.get(at)))
    }

    /// How many messages the list of `mark` had, if this one is made of it by pushes. An item that is replaced takes all
    /// after it with it, so sharing the newest one means sharing all before it.
    pub(super) fn shared(&self, mark: &Mark) -> Option<usize> {
        let shares = match &mark.newest {
            Some(newest) => self.item(mark.len - 1).is_some_and(|own| Arc::ptr_eq(own, newest)),
            None => true,
        };
        shares.then_some(mark.len)
    }

    fn item(&self, at: usize) -> Option<&Arc<Item>> {
        let segment = self.sealed.get(at / SEGMENT).unwrap_or(&self.tail);
        let at = at.checked_sub((at / SEGMENT).min(self.sealed.len()) * SEGMENT)?;
        segment.items.get(at)
    }

    pub(super) fn push(&mut self, message: Message) {
        let tail = Arc::make_mut(&mut self.tail);
        tail.items.push(Item::new(message));
        if tail.items.len() == SEGMENT {
            let full = std::mem::take(&mut self.tail);
            Arc::make_mut(&mut self.sealed).push(full);
        }
    }

    /// Puts `message` in the place of the one at `at`, which is there. Bytes may depend on the messages before, so that what
    /// follows is written again; what comes before is shared. Costs what follows, and at most one segment.
    pub(super) fn replace(&mut self, at: usize, message: Message) {
        let (first, within) = (at / SEGMENT, at % SEGMENT);
        let later = if first < self.sealed.len() { &mut Arc::make_mut(&mut self.sealed)[first..] } else { &mut [] };
        let from = std::iter::once(within).chain(std::iter::repeat(0));
        for (segment, from) in later.iter_mut().chain([&mut self.tail]).zip(from) {
            *segment = Arc::new(segment.unwritten_from(from));
        }
        let segment = later.first_mut().unwrap_or(&mut self.tail);
        Arc::make_mut(segment).items[within] = Item::new(message);
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        let all = self.sealed.iter().chain(std::iter::once(&self.tail));
        all.flat_map(|segment| segment.items.iter().map(|item| &item.message))
    }

    pub(super) fn total(&self, key: WireKey, measure: &dyn Fn(&Message) -> u64) -> u64 {
        self.sealed.iter().chain([&self.tail]).map(|segment| segment.total(key, measure)).sum()
    }

    /// Appends what `write` makes of the messages from `from` on.
    pub(super) fn write(
        &self,
        from: usize,
        key: WireKey,
        out: &mut Vec<u8>,
        write: &mut dyn FnMut(usize, &Message, &mut Vec<u8>),
    ) {
        let (mut at, first) = (from, (from / SEGMENT).min(self.sealed.len()));
        let sealed = &self.sealed[first..];
        out.reserve(sealed.iter().map(|segment| segment.written.len()).sum());
        for segment in sealed {
            let before = at % SEGMENT;
            if before == 0 && segment.written.copy_to(key, out) {
                at += SEGMENT;
                continue;
            }
            let start = out.len();
            for item in &segment.items[before..] {
                if !item.written.copy_to(key, out) {
                    write(at, &item.message, out);
                }
                at += 1;
            }
            if before == 0 {
                // The segment keeps them from now on.
                segment.written.set(key, &out[start..]);
                segment.items.iter().for_each(|item| item.written.clear());
            }
        }
        let before = at - self.sealed.len() * SEGMENT;
        for (at, item) in (at..).zip(&self.tail.items[before..]) {
            if item.written.copy_to(key, out) {
                continue;
            }
            let start = out.len();
            write(at, &item.message, out);
            item.written.set(key, &out[start..]);
        }
    }
}

impl FromIterator<Message> for List {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut list = Self::default();
        messages.into_iter().for_each(|m| list.push(m));
        list
    }
}
