//! From a text to a [`Node`].

use std::{collections::BTreeSet, fmt, marker::PhantomData, sync::Arc, thread};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;

use super::{Entry, Format, Node, Place, Source, Tree};
use crate::config::problem::Problem;

/// Most bytes of a text.
pub(in crate::config) const MOST_BYTES: usize = 4 << 20;

/// Most lists and maps within one another.
const MOST_DEPTH: usize = 64;

/// Most values, with those that aliases stand for.
const MOST_NODES: usize = 100_000;

/// Bytes of the stack for that depth: half of it is enough without optimisation.
const STACK: usize = 8 << 20;

/// # Errors
/// Invalid YAML or TOML, excessive size or depth, and duplicate keys.
pub(in crate::config) fn read(source: &Arc<Source>, format: Format) -> Result<Node, Problem> {
    if source.text.len() > MOST_BYTES {
        let why = format!("the file has {} bytes; the most are {MOST_BYTES}", source.text.len());
        return Err(Problem::new(Place::start(source), why));
    }
    if source.text.trim().is_empty() {
        return Err(Problem::new(Place::start(source), "the file is empty"));
    }
    // The readers of the formats call themselves for each level, and take more than a small thread has.
    let reader = thread::Builder::new().stack_size(STACK);
    thread::scope(|scope| match reader.spawn_scoped(scope, || parsed(source, format)) {
        Ok(thread) => {
            thread.join().unwrap_or_else(|_| Err(Problem::new(Place::start(source), "the file cannot be read")))
        }
        Err(e) => Err(Problem::new(Place::start(source), format!("there is no thread to read it: {e}"))),
    })
}

fn parsed(source: &Arc<Source>, format: Format) -> Result<Node, Problem> {
    match format {
        Format::Yaml => {
            let budget = serde_saphyr::budget! { max_depth: MOST_DEPTH, max_nodes: MOST_NODES };
            let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false, budget: budget };
            let read: Result<InYaml, _> = serde_saphyr::from_str_with_options(&source.text, options);
            let node = read.map_err(|error| {
                let place = error.location().map_or_else(|| Place::start(source), |at| in_yaml(source, at));
                let message = plain(&error.without_snippet().to_string());
                match tab_from(source, place.line).filter(|_| message.contains("tab")) {
                    Some(place) => Problem::new(place, "the line is indented with a tab: YAML takes spaces only"),
                    None => Problem::new(place, message),
                }
            })?;
            node.node(source, 0)
        }
        Format::Toml => {
            let read: Result<InToml, _> = toml::from_str(&source.text);
            let node = read.map_err(|error| {
                let offset = error.span().map_or(0, |span| span.start);
                Problem::new(Place::of_byte(source, offset), error.message().trim().to_owned())
            })?;
            node.node(source, 0)
        }
    }
}

/// Returns the first line from `line` on that is indented with a tab.
fn tab_from(source: &Arc<Source>, line: usize) -> Option<Place> {
    let is_indented = |text: &str| text.trim_start_matches(' ').starts_with('\t');
    let lines = source.text.lines().enumerate().skip(line - 1);
    let (at, _) = lines.into_iter().find(|(_, text)| is_indented(text))?;
    Some(Place { source: source.clone(), line: at + 1, column: 1 })
}

/// The message alone: the place is said by [`Problem`].
fn plain(message: &str) -> String {
    let message = message.trim().trim_start_matches("error: ");
    let end = message.find(" at line ").or_else(|| message.find(" --> ")).unwrap_or(message.len());
    let message = message[..end].trim();
    match message.strip_prefix("duplicate mapping key: ") {
        Some(key) => format!("the key '{}' is written twice", key.split(", set ").next().unwrap_or(key)),
        None => message.to_owned(),
    }
}

fn in_yaml(source: &Arc<Source>, at: serde_saphyr::Location) -> Place {
    let number = |n: u64| usize::try_from(n).unwrap_or(1).max(1);
    Place { source: source.clone(), line: number(at.line()), column: number(at.column()) }
}

/// A format whose reader says where a value stands.
trait Located: 'static {
    type Spanned<T: DeserializeOwned>: DeserializeOwned;

    fn split<T: DeserializeOwned>(spanned: Self::Spanned<T>, source: &Arc<Source>) -> (T, Place);
}

struct Yaml;
struct Toml;

type InYaml = Found<Yaml>;
type InToml = Found<Toml>;

impl Located for Yaml {
    type Spanned<T: DeserializeOwned> = serde_saphyr::Spanned<T>;

    fn split<T: DeserializeOwned>(spanned: Self::Spanned<T>, source: &Arc<Source>) -> (T, Place) {
        let place = in_yaml(source, spanned.referenced);
        (spanned.value, place)
    }
}

impl Located for Toml {
    type Spanned<T: DeserializeOwned> = toml::Spanned<T>;

    fn split<T: DeserializeOwned>(spanned: Self::Spanned<T>, source: &Arc<Source>) -> (T, Place) {
        let place = Place::of_byte(source, spanned.span().start);
        (spanned.into_inner(), place)
    }
}

/// A value as its reader gives it.
struct Found<L: Located>(L::Spanned<Raw<L>>);

enum Raw<L: Located> {
    Leaf(Tree),
    List(Vec<Found<L>>),
    Map(Vec<(L::Spanned<String>, Found<L>)>),
}

impl<L: Located> Found<L> {
    fn node(self, source: &Arc<Source>, depth: usize) -> Result<Node, Problem> {
        let (raw, place) = L::split(self.0, source);
        if depth > MOST_DEPTH {
            return Err(Problem::new(place, format!("more than {MOST_DEPTH} lists and maps are within one another")));
        }
        let tree = match raw {
            Raw::Leaf(tree) => tree,
            Raw::List(found) => {
                let nodes = found.into_iter().map(|found| found.node(source, depth + 1));
                Tree::List(nodes.collect::<Result<_, _>>()?)
            }
            Raw::Map(found) => {
                let mut known = BTreeSet::new();
                let mut entries = Vec::with_capacity(found.len());
                for (key, value) in found {
                    let (key, place) = L::split(key, source);
                    if !known.insert(key.clone()) {
                        return Err(Problem::new(place, format!("the key '{key}' is there twice")));
                    }
                    entries.push(Entry { key, place, node: value.node(source, depth + 1)? });
                }
                Tree::Map(entries)
            }
        };
        Ok(Node::new(place, tree))
    }
}

impl<'de, L: Located> Deserialize<'de> for Found<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Self)
    }
}

impl<'de, L: Located> Deserialize<'de> for Raw<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue(PhantomData))
    }
}

struct AnyValue<L>(PhantomData<L>);

impl<'de, L: Located> Visitor<'de> for AnyValue<L> {
    type Value = Raw<L>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw<L>, E> {
        Ok(Raw::Leaf(Tree::Null))
    }

    fn visit_none<E>(self) -> Result<Raw<L>, E> {
        Ok(Raw::Leaf(Tree::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw<L>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw<L>, E> {
        Ok(Raw::Leaf(Tree::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw<L>, E> {
        Ok(Raw::Leaf(Tree::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw<L>, E> {
        Ok(Raw::Leaf(Tree::Number(value.into())))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw<L>, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom(format!("{value} is no number that JSON has")))?;
        Ok(Raw::Leaf(Tree::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw<L>, E> {
        Ok(Raw::Leaf(Tree::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw<L>, A::Error> {
        let mut found = Vec::new();
        while let Some(value) = seq.next_element()? {
            found.push(value);
        }
        Ok(Raw::List(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw<L>, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = map.next_entry()? {
            found.push(entry);
        }
        Ok(Raw::Map(found))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reads(text: &str, format: Format) -> Result<Node, Problem> {
        read(&Arc::new(Source { name: "a".to_owned(), text: text.to_owned() }), format)
    }

    #[test]
    fn every_value_knows_its_line_and_column() {
        let node = reads("name: clerk\ntools:\n  - read: {root: .}\n  - 3\n", Format::Yaml).expect("YAML");
        assert_eq!(node.to_json(), json!({"name": "clerk", "tools": [{"read": {"root": "."}}, 3]}));
        let place = |pointer: &str| node.nearest(pointer).place.to_string();
        assert_eq!(place("/name"), "a:1:7");
        assert_eq!(place("/tools/0/read/root"), "a:3:18");
        assert_eq!(place("/tools/1"), "a:4:5");
        let node = reads("name = \"clerk\"\n[limits]\nsteps = 3\n", Format::Toml).expect("TOML");
        assert_eq!(node.to_json(), json!({"name": "clerk", "limits": {"steps": 3}}));
        assert_eq!(node.nearest("/limits/steps").place.to_string(), "a:3:9");
    }

    #[test]
    fn json_is_yaml_and_words_of_old_yaml_are_texts() {
        let text = r#"{"name": "a\/b \u00e9", "yes": true, "list": [1, 2.5, null, "x"]}"#;
        let node = reads(text, Format::Yaml).expect("JSON");
        assert_eq!(node.to_json(), json!({"name": "a/b é", "yes": true, "list": [1, 2.5, null, "x"]}));
        let node = reads("country: no\nversion: 1.10\nquoted: \"5\"", Format::Yaml).expect("YAML");
        assert_eq!(node.to_json(), json!({"country": "no", "version": 1.1, "quoted": "5"}));
        let version = node.get("version").and_then(Node::scalar);
        assert_eq!(version.as_deref(), Some("1.10"), "as text, it is what was written");
    }

    #[test]
    fn what_is_wrong_with_the_text_has_its_place() {
        for (text, format, place) in [
            ("a: 1\nb: [1, 2\n", Format::Yaml, "a:"),
            ("a: 1\na: 2\n", Format::Yaml, "a:2:1"),
            ("a = 1\nb = \n", Format::Toml, "a:2:"),
            ("", Format::Yaml, "a:1:1"),
            ("a: b\n\tc: d\n", Format::Yaml, "a:2:1"),
        ] {
            let problem = reads(text, format).expect_err(text);
            assert!(problem.to_string().contains(place), "{problem}");
        }
        let nested = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
        reads(&nested(MOST_DEPTH - 2), Format::Yaml).expect("deep");
        for levels in [MOST_DEPTH + 2, 100_000] {
            reads(&nested(levels), Format::Yaml).expect_err("too deep");
            let toml = format!("a = {}{}", "[".repeat(levels), "]".repeat(levels));
            reads(&toml, Format::Toml).expect_err("too deep");
        }
        let bomb: String = (1..30).fold("a0: &a0 [x]\n".to_owned(), |text, i| {
            let below = format!("*a{}, ", i - 1).repeat(9);
            format!("{text}a{i}: &a{i} [{below}]\n")
        });
        reads(&bomb, Format::Yaml).expect_err("a billion laughs");
    }
}
