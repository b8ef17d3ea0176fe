//! A persistent list of messages: cheap to share, and what is done to one copy no other sees.

use std::sync::Arc;

use crate::message::Message;

/// Bits of a message's place that choose a child. More make a push to a shared list copy more, fewer make the tree higher.
const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;

/// All leaves of a tree are equally deep, and all nodes full but the last ones.
#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<Arc<Message>>),
    Inner(Vec<Arc<Self>>),
}

/// The child of a node at `height` in which the message at `at` is.
fn child(at: usize, height: u32) -> usize {
    (at >> (BITS * height)) % WIDTH
}

impl Node {
    fn get(&self, at: usize, height: u32) -> &Message {
        match self {
            Self::Leaf(messages) => &messages[child(at, 0)],
            Self::Inner(nodes) => nodes[child(at, height)].get(at, height - 1),
        }
    }

    /// Puts `message` at `at`, where one is or where the next one comes.
    fn put(&mut self, at: usize, height: u32, message: Message) {
        let place = child(at, height);
        match self {
            Self::Leaf(messages) if place == messages.len() => messages.push(message.into()),
            Self::Leaf(messages) => messages[place] = message.into(),
            Self::Inner(nodes) => {
                if place == nodes.len() {
                    nodes.push(Arc::new(if height == 1 { Self::Leaf(Vec::new()) } else { Self::Inner(Vec::new()) }));
                }
                Arc::make_mut(&mut nodes[place]).put(at, height - 1, message);
            }
        }
    }

    /// True if the node is `earlier`, or a copy of it to which messages were pushed.
    fn continues(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Leaf(own), Self::Leaf(earlier)) => begins_with(own, earlier, |_, _| false),
            (Self::Inner(own), Self::Inner(earlier)) => begins_with(own, earlier, Self::continues),
            _ => false,
        }
    }
}

/// True if the first of `own` are those of `earlier`: the same places in memory, or for those that are not, if `continues` says so.
fn begins_with<T>(own: &[Arc<T>], earlier: &[Arc<T>], continues: impl Fn(&T, &T) -> bool) -> bool {
    let is_same = |(own, earlier): (&Arc<T>, &Arc<T>)| Arc::ptr_eq(own, earlier) || continues(own, earlier);
    own.len() >= earlier.len() && own.iter().zip(earlier).all(is_same)
}

/// A tree whose leaves are the messages. Copies share all nodes that are alike: a clone is one reference count, and a push to a
/// list that has clones copies the nodes on the way to its end.
#[derive(Clone, Debug)]
pub(super) struct List {
    root: Arc<Node>,
    height: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())), height: 0, len: 0 }
    }
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> Option<&Message> {
        (at < self.len).then(|| self.root.get(at, self.height))
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        self.iter_from(0)
    }

    pub(super) fn iter_from(&self, from: usize) -> impl DoubleEndedIterator<Item = &Message> + Clone {
        (from..self.len).map(|at| self.root.get(at, self.height))
    }

    pub(super) fn push(&mut self, message: Message) {
        if self.len == WIDTH << (BITS * self.height) {
            self.root = Arc::new(Node::Inner(vec![self.root.clone()]));
            self.height += 1;
        }
        Arc::make_mut(&mut self.root).put(self.len, self.height, message);
        self.len += 1;
    }

    /// Puts `message` in the place of the one at `at`, which is there.
    pub(super) fn replace(&mut self, at: usize, message: Message) {
        Arc::make_mut(&mut self.root).put(at, self.height, message);
    }

    /// True if this list is `earlier`, or a copy of it to which messages were pushed.
    pub(super) fn continues(&self, earlier: &Self) -> bool {
        let mut node = &self.root;
        for _ in earlier.height..self.height {
            let Node::Inner(nodes) = &**node else { return false };
            node = &nodes[0];
        }
        earlier.len <= self.len && (Arc::ptr_eq(node, &earlier.root) || node.continues(&earlier.root))
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

    /// Nodes of `node` that are not in `other`, as far as they have the same places.
    fn own_nodes(node: &Arc<Node>, other: Option<&Arc<Node>>) -> usize {
        match (&**node, other.map(|other| &**other)) {
            _ if other.is_some_and(|other| Arc::ptr_eq(node, other)) => 0,
            (Node::Inner(nodes), Some(Node::Inner(others))) => {
                1 + nodes.iter().enumerate().map(|(at, node)| own_nodes(node, others.get(at))).sum::<usize>()
            }
            (Node::Inner(nodes), None) => 1 + nodes.iter().map(|node| own_nodes(node, None)).sum::<usize>(),
            _ => 1,
        }
    }

    #[test]
    fn a_push_to_a_shared_list_copies_the_way_to_its_end_however_long_it_is() {
        let mut list = List::default();
        for n in 0..10_000 {
            let before = list.clone();
            list.push(Message::user(format!("{n}")));
            let copied = if list.height == before.height { own_nodes(&list.root, Some(&before.root)) } else { 0 };
            assert!(copied <= 4, "{copied} nodes with {n} messages");
            assert!(list.continues(&before) && !before.continues(&list));
        }
        assert_eq!(list.height, 3);
    }

    #[test]
    fn a_list_that_grew_by_itself_continues_no_other_that_says_the_same() {
        let list = |len: usize| (0..len).map(|n| Message::user(format!("{n}"))).collect::<List>();
        for len in [1, WIDTH, WIDTH + 1, WIDTH * WIDTH + 1] {
            assert!(!list(len).continues(&list(len)) && list(len).continues(&List::default()));
            assert!(!list(len * WIDTH).continues(&list(len)));
        }
    }
}
