//! A list of messages that is cheap to share, cheap to append to, and remembers how a wire wrote each part of it.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::message::Message;

/// Messages per sealed segment: large enough that a long history is few copies, small enough that the open tail is cheap.
const SEGMENT: usize = 32;

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

/// What one wire wrote for the first messages of a segment, one after the other. Another wire's bytes are not kept beside it:
/// runs rarely change wires.
#[derive(Clone, Debug, Default)]
struct Written {
    key: Option<WireKey>,
    bytes: Vec<u8>,
    /// Which message each is, and where its bytes end.
    ends: Vec<(u64, usize)>,
}

impl Written {
    /// How many of the first of `items` are here under `key`. All who share this have one list before them, so that the same
    /// item means the same ones before it.
    fn kept(&self, key: WireKey, items: &[Item]) -> usize {
        let ends = if self.key == Some(key) { &self.ends[..] } else { &[] };
        let mut both = ends.iter().zip(items);
        both.rposition(|((id, _), item)| *id == item.id).map_or(0, |last| last + 1)
    }

    /// The bytes of the items in `range`, which are here.
    fn bytes_of(&self, range: Range<usize>) -> &[u8] {
        let start_of = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[start_of(range.start)..start_of(range.end)]
    }

    /// Forgets all but the first `kept`.
    fn truncate(&mut self, key: WireKey, kept: usize) {
        self.bytes.truncate(self.bytes_of(0..kept).len());
        self.ends.truncate(kept);
        self.key = Some(key);
    }

    fn push(&mut self, item: &Item, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push((item.id, self.bytes.len()));
    }
}

#[derive(Clone, Debug)]
struct Item {
    /// No other item's, ever.
    id: u64,
    message: Arc<Message>,
}

impl Item {
    fn new(message: impl Into<Arc<Message>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), message: message.into() }
    }
}

#[derive(Debug, Default)]
struct Segment {
    items: Vec<Item>,
    /// Shared with the views of this segment in which some of its last messages are others.
    written: Arc<Mutex<Written>>,
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
        // It will go on in another way than this one.
        let written = Arc::new(Mutex::new(self.lock_written().clone()));
        Self { items: self.items.clone(), written, total: Mutex::new(*self.lock_total()) }
    }
}

impl Segment {
    /// The same messages, of which those from `at` on must be written again.
    fn unwritten_from(&self, at: usize) -> Self {
        let (before, after) = self.items.split_at(at);
        let after = after.iter().map(|item| Item::new(item.message.clone()));
        let written = if before.is_empty() { Arc::default() } else { self.written.clone() };
        Self { items: before.iter().cloned().chain(after).collect(), written, total: Mutex::default() }
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

    /// Appends what `write` makes of the messages from `from` on, of which the first is the `at`th of the history.
    fn write(
        &self,
        from: usize,
        at: usize,
        key: WireKey,
        out: &mut Vec<u8>,
        write: &mut dyn FnMut(usize, &Message, &mut Vec<u8>),
    ) {
        let mut written = self.lock_written();
        let kept = written.kept(key, &self.items);
        if kept > from {
            out.extend_from_slice(written.bytes_of(from..kept));
        }
        let new = kept.max(from);
        // What is written stands behind what is kept, and without a gap.
        let keeps = kept >= from && new < self.items.len();
        if keeps {
            written.truncate(key, kept);
        }
        for (index, item) in self.items.iter().enumerate().skip(new) {
            let start = out.len();
            write(at + index - from, &item.message, out);
            if keeps {
                written.push(item, &out[start..]);
            }
        }
        if keeps && self.items.len() == SEGMENT {
            written.bytes.shrink_to_fit();
        }
    }

    fn lock_written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_total(&self) -> MutexGuard<'_, Total> {
        self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a list had come.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    len: usize,
    newest: Option<u64>,
}

/// Cloning is two reference counts. Appending copies at most one segment, pointers and what is written of it, and that only where
/// there are clones.
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
        self.item(at).map(|item| &*item.message)
    }

    pub(super) fn mark(&self) -> Mark {
        let len = self.len();
        Mark { len, newest: len.checked_sub(1).and_then(|at| self.item(at)).map(|item| item.id) }
    }

    /// The messages after those of the list of `mark`, if this one is made of it by pushes.
    pub(super) fn since(&self, mark: &Mark) -> Option<impl DoubleEndedIterator<Item = &Message> + Clone> {
        Some((self.shared(mark)?..self.len()).filter_map(|at| self.get(at)))
    }

    /// How many messages the list of `mark` had, if this one is made of it by pushes. An item that is replaced takes all
    /// after it with it, so sharing the newest one means sharing all before it.
    pub(super) fn shared(&self, mark: &Mark) -> Option<usize> {
        let shares = match mark.newest {
            Some(newest) => self.item(mark.len - 1).is_some_and(|own| own.id == newest),
            None => true,
        };
        shares.then_some(mark.len)
    }

    fn item(&self, at: usize) -> Option<&Item> {
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
        all.flat_map(|segment| segment.items.iter().map(|item| &*item.message))
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
        let first = (from / SEGMENT).min(self.sealed.len());
        let mut at = from;
        for (n, segment) in self.sealed[first..].iter().chain([&self.tail]).enumerate() {
            let before = at - (first + n) * SEGMENT;
            segment.write(before, at, key, out, write);
            at += segment.items.len() - before;
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
