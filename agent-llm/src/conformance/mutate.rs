//! Random, reproducible mutation of server responses: [`Mutator`].

use serde_json::{Value, json};

/// Mutates streams and bodies at random. The same seed produces the same mutations.
///
/// Mutations of real data find more faults than noise does: nearly all of the data still follows
/// the protocol.
///
/// ```
/// use agent_llm::conformance::Mutator;
///
/// let changed = |seed| {
///     let mut events = vec![r#"{"a": [1, "two"]}"#.to_owned(), "[DONE]".to_owned()];
///     Mutator::new(seed).events(&mut events);
///     events
/// };
/// assert_eq!(changed(7), changed(7));
/// assert!((0..20).any(|seed| changed(seed) != changed(7)));
/// ```
#[derive(Clone, Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// Creates a mutator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a random number (SplitMix64).
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a random number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end.max(1) as u64).unwrap_or_default()
    }

    /// Applies one to three mutations to a stream's events: their order, their number, or the
    /// content of one.
    pub fn events(&mut self, events: &mut Vec<String>) {
        for _ in 0..=self.below(3) {
            if events.is_empty() {
                return;
            }
            let (at, other) = (self.below(events.len()), self.below(events.len()));
            match self.below(10) {
                0 => drop(events.remove(at)),
                1 => events.insert(other, events[at].clone()),
                2 => events.swap(at, other),
                3 => events.truncate(at),
                4 => events[at] = self.spliced(&events[at], &events[other]),
                5 | 6 => self.flip(&mut events[at]),
                _ => self.json(&mut events[at]),
            }
        }
    }

    /// Mutates a value somewhere in the JSON of `text`, or its type. Text that is not JSON is
    /// mutated byte by byte.
    pub fn json(&mut self, text: &mut String) {
        let Ok(mut json) = serde_json::from_str::<Value>(text) else { return self.flip(text) };
        self.value(&mut json);
        *text = json.to_string();
    }

    /// Applies one to three mutations to bytes: flips, cuts, repeats or inserts.
    pub fn bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            if bytes.is_empty() {
                return;
            }
            let (at, length) = (self.below(bytes.len()), 1 + self.below(16));
            let piece = at..(at + length).min(bytes.len());
            match self.below(5) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(piece)),
                2 => {
                    let to = self.below(bytes.len());
                    let copy = bytes[piece].to_vec();
                    bytes.splice(to..to, copy);
                }
                3 => bytes.truncate(at),
                _ => bytes.insert(at, *self.one_of(b"\n\r:\"\\{}[],\x00\xFF\xC3d ")),
            }
        }
    }

    fn flip(&mut self, text: &mut String) {
        let mut bytes = std::mem::take(text).into_bytes();
        self.bytes(&mut bytes);
        *text = String::from_utf8_lossy(&bytes).into_owned();
    }

    /// Joins the beginning of one text and the end of another.
    fn spliced(&mut self, one: &str, other: &str) -> String {
        let (begins, ends) = (self.within(one), self.within(other));
        format!("{}{}", &one[..begins], &other[ends..])
    }

    /// Returns a position on a character boundary of `text`, including both ends.
    fn within(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
    }

    /// Descends at random, and mutates the value that it reaches.
    fn value(&mut self, json: &mut Value) {
        let goes_on = self.below(5) > 0;
        match json {
            Value::Object(fields) if goes_on && !fields.is_empty() => {
                let at = self.below(fields.len());
                if let Some((_, value)) = fields.iter_mut().nth(at) {
                    self.value(value);
                }
            }
            Value::Array(items) if goes_on && !items.is_empty() => {
                let at = self.below(items.len());
                self.value(&mut items[at]);
            }
            Value::Object(fields) if self.below(2) == 0 => {
                let at = self.below(fields.len());
                if let Some(name) = fields.keys().nth(at).cloned() {
                    let value = fields.remove(&name).unwrap_or_default();
                    if self.below(2) == 0 {
                        fields.insert(format!("{name}_"), value);
                    }
                }
            }
            Value::Array(items) if self.below(2) == 0 => {
                let at = self.below(items.len());
                if let Some(item) = items.get(at).cloned() {
                    items.push(item);
                }
            }
            other => *other = self.another(),
        }
    }

    fn another(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(self.number()),
            4 => json!(1e300),
            5 => json!(""),
            6 => json!("\u{0}\u{202e}😀"),
            7 => json!([]),
            8 => json!({}),
            9 => json!([null, {"index": 0, "type": "text", "text": "x"}]),
            10 => json!({"type": "unheard_of", "index": 4_294_967_296_u64, "id": null}),
            _ => json!("stop"),
        }
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
