//! Incremental JSON parser for streamed output.

use serde_json::{Map, Value};

use crate::arguments::DEEPEST;

/// Parses JSON incrementally, and has a value of the known part at any time.
///
/// * A text holds the characters received so far. A number or a literal is present once it is
///   complete, a field once its value begins.
/// * Text around the value is skipped: prose, a code fence. If there are several values, the newest
///   counts.
/// * The total cost is linear in the length of the input, however many pieces there are.
/// * Invalid JSON ends the parsing: the value keeps its last state. Only a newer value replaces an
///   older one.
///
/// ```
/// use agent_tools::PartialJson;
/// use serde_json::json;
///
/// let mut json = PartialJson::new();
/// json.push("Sure: {\"city\": \"Be");
/// assert_eq!(json.value(), Some(&json!({"city": "Be"})));
/// json.push("rn\", \"days\": [1, 2");
/// assert_eq!(json.value(), Some(&json!({"city": "Bern", "days": [1]})));
/// json.push("]}");
/// assert_eq!(json.value(), Some(&json!({"city": "Bern", "days": [1, 2]})));
/// assert!(json.is_complete());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PartialJson {
    /// The incomplete value; `path` locates its open part.
    open: Option<Value>,
    path: Vec<Step>,
    /// Newest complete value.
    complete: Option<Value>,
    state: State,
    /// Name of the newest field.
    key: String,
    /// Partial number or literal.
    word: String,
    escape: Escape,
    /// First half of a surrogate pair written as two escapes.
    half: Option<u32>,
    objects_only: bool,
}

/// Step from a list or an object to its newest element.
#[derive(Clone, Debug)]
enum Step {
    Item,
    Field(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Outside of values.
    #[default]
    Prose,
    /// Expects a value, or the end of a list.
    Value,
    /// Expects a field, or the end of an object.
    Key,
    InKey,
    Colon,
    InText,
    /// In a number, `true`, `false` or `null`.
    InWord,
    /// Expects a comma, or the end of the list or object.
    Comma,
    /// Invalid JSON was found.
    Broken,
}

/// Progress of an escape sequence in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// Number of missing hexadecimal digits; value of the digits so far.
    Unicode(u8, u32),
}

impl PartialJson {
    /// Creates a parser without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Skips top-level lists, such as the `[1]` of a footnote.
    #[must_use]
    pub fn objects_only(mut self) -> Self {
        self.objects_only = true;
        self
    }

    /// Parses more text.
    pub fn push(&mut self, mut text: &str) {
        while let Some(next) = text.chars().next() {
            let taken = self.take(next, text);
            text = &text[taken..];
        }
    }

    /// Returns the known part of the value; `None` before any element of an object or a list is
    /// known.
    pub fn value(&self) -> Option<&Value> {
        // A single bracket may belong to prose.
        self.open.as_ref().filter(|value| !is_empty(value)).or(self.complete.as_ref())
    }

    /// Returns true if the newest value is complete.
    pub fn is_complete(&self) -> bool {
        self.open.is_none() && self.complete.is_some()
    }

    /// Consumes the start of `text`, whose first character is `next`; returns the number of bytes.
    fn take(&mut self, next: char, text: &str) -> usize {
        match self.state {
            State::Broken => text.len(),
            State::Prose => self.prose(text),
            State::InKey | State::InText => self.in_text(next, text),
            State::InWord => self.in_word(text),
            _ if next.is_whitespace() => next.len_utf8(),
            _ => match self.punctuation(next) {
                Some(()) => next.len_utf8(),
                None => self.nonsense(),
            },
        }
    }

    fn prose(&mut self, text: &str) -> usize {
        let begins = |c| c == '{' || c == '[' && !self.objects_only;
        let Some(at) = text.find(begins) else { return text.len() };
        self.begin(text.as_bytes()[at] == b'{');
        at + 1
    }

    /// Returns `None` for a character that is invalid in this state.
    fn punctuation(&mut self, next: char) -> Option<()> {
        match (self.state, next) {
            (State::Value, '{' | '[') if self.path.len() < DEEPEST => self.begin(next == '{'),
            (State::Value, '"') => {
                self.add(Value::String(String::new()), true);
                self.state = State::InText;
            }
            (State::Value, c) if is_word(c) => {
                self.word = c.into();
                self.state = State::InWord;
            }
            (State::Key, '"') => {
                self.key.clear();
                self.state = State::InKey;
            }
            (State::Colon, ':') => self.state = State::Value,
            (State::Comma, ',') => self.state = self.inside()?,
            // A trailing comma is accepted.
            (State::Value | State::Comma, ']') if self.inside()? == State::Value => self.end(),
            (State::Key | State::Comma, '}') if self.inside()? == State::Key => self.end(),
            _ => return None,
        }
        Some(())
    }

    /// Opens an object or a list.
    fn begin(&mut self, object: bool) {
        let empty = if object { Value::Object(Map::new()) } else { Value::Array(Vec::new()) };
        self.add(empty, true);
        self.state = if object { State::Key } else { State::Value };
    }

    /// Adds a value to its parent; if it stays open, the next elements belong to it.
    fn add(&mut self, value: Value, stays_open: bool) {
        let key = std::mem::take(&mut self.key);
        let step = match self.newest() {
            None => {
                self.open = Some(value);
                return;
            }
            Some(Value::Object(fields)) => {
                fields.insert(key.clone(), value);
                Step::Field(key)
            }
            Some(Value::Array(items)) => {
                items.push(value);
                Step::Item
            }
            Some(_) => return,
        };
        if stays_open {
            self.path.push(step);
        }
    }

    /// Closes the innermost open value.
    fn end(&mut self) {
        match self.path.pop() {
            Some(_) => self.state = State::Comma,
            None => {
                self.complete = self.open.take();
                self.state = State::Prose;
            }
        }
    }

    /// Returns the innermost open value.
    fn newest(&mut self) -> Option<&mut Value> {
        self.path.iter().try_fold(self.open.as_mut()?, |value, step| match step {
            Step::Item => value.as_array_mut()?.last_mut(),
            Step::Field(name) => value.get_mut(name),
        })
    }

    /// Returns the initial state of the innermost open object or list.
    fn inside(&mut self) -> Option<State> {
        self.newest().map(|value| if value.is_object() { State::Key } else { State::Value })
    }

    fn in_word(&mut self, text: &str) -> usize {
        let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
        self.word.push_str(&text[..length]);
        if length == text.len() {
            return length; // the word may continue
        }
        match serde_json::from_str(&self.word) {
            Ok(value) => {
                self.add(value, false);
                self.state = State::Comma;
                length
            }
            Err(_) => length + self.nonsense(),
        }
    }

    fn in_text(&mut self, next: char, text: &str) -> usize {
        match (self.escape, next) {
            (Escape::None, '"') => self.end_text(),
            (Escape::None, '\\') => self.escape = Escape::Begun,
            (Escape::None, _) => {
                let plain = text.find(['"', '\\']).unwrap_or(text.len());
                self.say(&text[..plain]);
                return plain;
            }
            (Escape::Begun, 'u') => self.escape = Escape::Unicode(4, 0),
            (Escape::Begun, letter) => self.escaped(letter),
            (Escape::Unicode(missing, value), digit) => {
                let Some(digit) = digit.to_digit(16) else { return self.nonsense() };
                match (missing - 1, value * 16 + digit) {
                    (0, unit) => self.unit(unit),
                    (missing, value) => self.escape = Escape::Unicode(missing, value),
                }
            }
        }
        next.len_utf8()
    }

    fn end_text(&mut self) {
        self.say(""); // flushes a pending half of a surrogate pair
        if self.state == State::InKey {
            self.state = State::Colon;
        } else {
            self.end();
        }
    }

    fn escaped(&mut self, letter: char) {
        self.escape = Escape::None;
        match letter {
            'b' => self.say("\u{8}"),
            'f' => self.say("\u{c}"),
            'n' => self.say("\n"),
            'r' => self.say("\r"),
            't' => self.say("\t"),
            '"' | '\\' | '/' => self.say(letter.encode_utf8(&mut [0; 4])),
            // As in a regular expression or a path: the backslash is literal.
            other => {
                self.say("\\");
                self.say(other.encode_utf8(&mut [0; 4]));
            }
        }
    }

    /// Adds a UTF-16 code unit; characters beyond U+FFFF take two.
    fn unit(&mut self, unit: u32) {
        self.escape = Escape::None;
        let character = match (self.half.take(), unit) {
            (Some(first), 0xdc00..0xe000) => char::from_u32(0x10000 + ((first - 0xd800) << 10) + (unit - 0xdc00)),
            (before, 0xd800..0xdc00) => {
                self.half = before;
                self.say("");
                self.half = Some(unit);
                return;
            }
            (before, unit) => {
                self.half = before;
                char::from_u32(unit)
            }
        };
        self.say(character.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]));
    }

    /// Appends to the open text or field name.
    fn say(&mut self, text: &str) {
        let lone = self.half.take().map(|_| char::REPLACEMENT_CHARACTER);
        let place = match self.state {
            State::InKey => Some(&mut self.key),
            _ => match self.newest() {
                Some(Value::String(place)) => Some(place),
                _ => None,
            },
        };
        if let Some(place) = place {
            place.extend(lone);
            place.push_str(text);
        }
    }

    /// Handles invalid JSON: the open value was prose, or is broken.
    fn nonsense(&mut self) -> usize {
        let was_prose = match &self.open {
            Some(Value::Object(fields)) => fields.is_empty() && self.state == State::Key,
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if was_prose {
            self.open = None;
        }
        self.state = if was_prose { State::Prose } else { State::Broken };
        0
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '+' | '.')
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
