//! Persistent (immutable, structurally shared) list of messages: cheap to clone, and clones are
//! independent.

use std::sync::{Arc, OnceLock};

use crate::message::Message;

/// Number of index bits that select a child. A larger value makes copies of nodes costlier, a
/// smaller one the tree higher.
const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;

/// Slots of a node. A slot is set once: lists that share a node may all append to it, and each list
/// knows its own length.
type Places<T> = [OnceLock<Arc<T>>; WIDTH];

/// Node of the tree; all leaves have the same depth.
#[derive(Debug)]
enum Node {
    Leaf(Places<Message>),
    Inner(Places<Self>),
}

/// Index of the child, in a node at `height`, that contains the message at `at`.
fn child(at: usize, height: u32) -> usize {
    (at >> (BITS * height)) % WIDTH
}

impl Node {
    fn empty(height: u32) -> Arc<Self> {
        Arc::new(if height == 0 { Self::Leaf(Places::default()) } else { Self::Inner(Places::default()) })
    }

    fn get(&self, at: usize, height: u32) -> Option<&Message> {
        match self {
            Self::Leaf(messages) => Some(messages[child(at, 0)].get()?),
            Self::Inner(nodes) => nodes[child(at, height)].get()?.get(at, height - 1),
        }
    }

    /// Sets the message at `at`; returns `message` if another list has already set the slot.
    fn put(&self, at: usize, height: u32, message: Arc<Message>) -> Result<(), Arc<Message>> {
        match self {
            Self::Leaf(messages) => messages[child(at, 0)].set(message),
            Self::Inner(nodes) => {
                nodes[child(at, height)].get_or_init(|| Self::empty(height - 1)).put(at, height - 1, message)
            }
        }
    }

    /// Returns a copy with `message` at `at`: copies the nodes on the path, and shares all others.
    fn with(&self, at: usize, height: u32, message: Arc<Message>) -> Arc<Self> {
        let place = child(at, height);
        Arc::new(match self {
            Self::Leaf(messages) => {
                let mut messages = messages.clone();
                messages[place] = message.into();
                Self::Leaf(messages)
            }
            Self::Inner(nodes) => {
                let mut nodes = nodes.clone();
                let below = nodes[place].get_or_init(|| Self::empty(height - 1)).with(at, height - 1, message);
                nodes[place] = below.into();
                Self::Inner(nodes)
            }
        })
    }

    /// True if the first `len` messages are identical to those of `other` in memory.
    fn begins_like(&self, other: &Self, len: usize, height: u32) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        match (self, other) {
            (Self::Leaf(own), Self::Leaf(other)) => is_each(own, other, len, |_, _, _| false),
            (Self::Inner(own), Self::Inner(other)) => {
                let below = 1 << (BITS * height);
                is_each(own, other, len.div_ceil(below), |at, own, other| {
                    own.begins_like(other, below.min(len - at * below), height - 1)
                })
            }
            _ => false,
        }
    }
}

/// True if the first `len` slots are equal under `is_same`.
fn is_each<T>(own: &Places<T>, other: &Places<T>, len: usize, is_same: impl Fn(usize, &T, &T) -> bool) -> bool {
    own.iter().zip(other).take(len).enumerate().all(|(at, pair)| match (pair.0.get(), pair.1.get()) {
        (Some(own), Some(other)) => Arc::ptr_eq(own, other) || is_same(at, own, other),
        _ => false,
    })
}

/// Tree whose leaves contain the messages. Clones share all nodes: a clone costs one reference
/// count. A push sets a free slot; if another clone has set it, the nodes on the path are copied.
#[derive(Clone, Debug)]
pub(super) struct List {
    root: Arc<Node>,
    height: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { root: Node::empty(0), height: 0, len: 0 }
    }
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> Option<&Message> {
        if at < self.len { self.root.get(at, self.height) } else { None }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        self.iter_from(0)
    }

    pub(super) fn iter_from(&self, from: usize) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        (from..self.len).filter_map(|at| self.root.get(at, self.height))
    }

    pub(super) fn push(&mut self, message: Message) {
        if self.len == WIDTH << (BITS * self.height) {
            let mut places = Places::default();
            places[0] = self.root.clone().into();
            self.root = Arc::new(Node::Inner(places));
            self.height += 1;
        }
        if let Err(message) = self.root.put(self.len, self.height, message.into()) {
            self.root = self.root.with(self.len, self.height, message);
        }
        self.len += 1;
    }

    /// Replaces the message at `at`, which must exist.
    pub(super) fn replace(&mut self, at: usize, message: Message) {
        self.root = self.root.with(at, self.height, message.into());
    }

    /// Returns the first `len` messages, sharing their nodes.
    pub(super) fn first(&self, len: usize) -> Self {
        let (mut root, mut height, len) = (&self.root, self.height, len.min(self.len));
        while height > 0 && len <= WIDTH << (BITS * (height - 1)) {
            let Node::Inner(nodes) = &**root else { break };
            let Some(first) = nodes[0].get() else { break };
            (root, height) = (first, height - 1);
        }
        Self { root: root.clone(), height, len }
    }

    /// True if this list is `earlier`, or a clone of it with messages pushed.
    pub(super) fn continues(&self, earlier: &Self) -> bool {
        let mut node = &self.root;
        for _ in earlier.height..self.height {
            let Node::Inner(nodes) = &**node else { return false };
            let Some(first) = nodes[0].get() else { return false };
            node = first;
        }
        earlier.len <= self.len && node.begins_like(&earlier.root, earlier.len, earlier.height)
    }
}

impl FromIterator<Message> for List {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut list = Self::default();
        messages.into_iter().for_each(|message| list.push(message));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of nodes of `node` that `other` does not share at the same positions.
    fn own_nodes(node: &Arc<Node>, other: Option<&Arc<Node>>) -> usize {
        if other.is_some_and(|other| Arc::ptr_eq(node, other)) {
            return 0;
        }
        let Node::Inner(nodes) = &**node else { return 1 };
        let others = other.and_then(|other| match &**other {
            Node::Inner(others) => Some(others),
            Node::Leaf(_) => None,
        });
        let other = |at: usize| others.and_then(|others| others[at].get());
        1 + nodes.iter().enumerate().filter_map(|(at, node)| Some(own_nodes(node.get()?, other(at)))).sum::<usize>()
    }

    fn said(n: usize) -> Message {
        Message::user(format!("{n}"))
    }

    #[test]
    fn a_push_copies_nothing_and_one_where_another_copy_pushed_copies_the_way_there() {
        let mut list = List::default();
        for n in 0..10_000 {
            let (before, mut other) = (list.clone(), list.clone());
            list.push(said(n));
            let is_higher = list.height > before.height;
            assert!(is_higher || Arc::ptr_eq(&list.root, &before.root), "a node was copied with {n} messages");
            other.push(said(n));
            let copied = if is_higher { 0 } else { own_nodes(&other.root, Some(&list.root)) };
            assert!(copied <= 4, "{copied} nodes with {n} messages");
            assert!(list.continues(&before) && !before.continues(&list) && other.continues(&before));
            assert!(!other.continues(&list) && !list.continues(&other));
        }
        assert_eq!(list.height, 3);
    }

    #[test]
    fn a_list_continues_each_of_its_beginnings_and_a_beginning_may_go_on_another_way() {
        let whole = (0..600).map(said).collect::<List>();
        let mut grown = List::default();
        for len in 0..600 {
            let mut first = whole.first(len);
            assert!(whole.continues(&first) && first.len() == len && first.height == grown.height, "{len}");
            first.push(said(1_000));
            assert!(!whole.continues(&first) && first.iter().take(len).eq(grown.iter()));
            grown.push(said(len));
        }
        assert!(whole.iter().eq(grown.iter()), "what goes on from a beginning changes nothing of the whole");
    }

    #[test]
    fn a_list_that_grew_by_itself_continues_no_other_that_says_the_same() {
        let list = |len: usize| (0..len).map(said).collect::<List>();
        for len in [1, WIDTH, WIDTH + 1, WIDTH * WIDTH + 1] {
            assert!(!list(len).continues(&list(len)) && list(len).continues(&List::default()));
            assert!(!list(len * WIDTH).continues(&list(len)));
        }
    }
}
