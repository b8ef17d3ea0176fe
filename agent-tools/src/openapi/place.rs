//! Parameter locations and serialisation styles.

use serde_json::Value;

use crate::http::encoded;

/// Location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// Serialisation style of a composite value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `a,b`: in paths, headers and cookies, and in queries without `explode`.
    Commas,
    /// `name=a&name=b`, and `x=1&y=2` for an object.
    Exploded,
    /// `x=1,y=2` for an object in a path or a header.
    Pairs,
    /// `a b`.
    Spaces,
    /// `a|b`.
    Pipes,
    /// `name[x]=1&name[y]=2`.
    Deep,
    /// As JSON.
    Json,
}

impl Place {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "path" => Some(Self::Path),
            "query" => Some(Self::Query),
            "header" => Some(Self::Header),
            "cookie" => Some(Self::Cookie),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

impl Style {
    /// Returns the style of a parameter; `None` if it is unknown.
    pub(super) fn of(place: Place, style: Option<&str>, explode: Option<bool>) -> Option<Self> {
        let explode =
            explode.unwrap_or(matches!(style, None | Some("form")) && matches!(place, Place::Query | Place::Cookie));
        match (place, style) {
            (Place::Path | Place::Header, None | Some("simple")) => {
                Some(if explode { Self::Pairs } else { Self::Commas })
            }
            (Place::Query, None | Some("form")) => Some(if explode { Self::Exploded } else { Self::Commas }),
            (Place::Cookie, None | Some("form")) => Some(Self::Commas),
            (Place::Query, Some("spaceDelimited")) => Some(if explode { Self::Exploded } else { Self::Spaces }),
            (Place::Query, Some("pipeDelimited")) => Some(if explode { Self::Exploded } else { Self::Pipes }),
            (Place::Query, Some("deepObject")) => Some(Self::Deep),
            _ => None,
        }
    }

    /// Returns the value as pairs of a query or a form: names unescaped, values
    /// [`escaped`](Self::escaped).
    pub(super) fn pairs(self, name: &str, value: &Value) -> Vec<(String, String)> {
        let plain = |one: &Value| encoded(&plain(one));
        match (self, value) {
            (_, Value::Null) => Vec::new(),
            (Self::Exploded, Value::Array(all)) => all.iter().map(|one| (name.to_owned(), plain(one))).collect(),
            (Self::Exploded, Value::Object(all)) => all.iter().map(|(key, one)| (key.clone(), plain(one))).collect(),
            (Self::Deep, Value::Object(all)) => {
                let pair = |(key, one): (&String, &Value)| match one {
                    Value::Array(list) => list.iter().map(|one| (format!("{name}[{key}]"), plain(one))).collect(),
                    one => vec![(format!("{name}[{key}]"), plain(one))],
                };
                all.iter().flat_map(pair).collect()
            }
            _ => vec![(name.to_owned(), self.escaped(value))],
        }
    }

    /// Returns the value as one text.
    pub(super) fn joined(self, value: &Value) -> String {
        self.join(value, str::to_owned)
    }

    /// Like [`joined`](Self::joined), for a URL: the parts are percent-encoded, so that delimiters
    /// are distinct from content.
    pub(super) fn escaped(self, value: &Value) -> String {
        self.join(value, encoded)
    }

    fn join(self, value: &Value, write: fn(&str) -> String) -> String {
        let separator = match self {
            Self::Spaces => write(" "),
            Self::Pipes => write("|"),
            _ => ",".to_owned(),
        };
        let plain = |one: &Value| write(&plain(one));
        let parts: Vec<_> = match (self, value) {
            (Self::Json, value) => return write(&value.to_string()),
            (_, Value::Array(all)) => all.iter().map(plain).collect(),
            (Self::Pairs, Value::Object(all)) => {
                all.iter().map(|(key, one)| format!("{}={}", write(key), plain(one))).collect()
            }
            (_, Value::Object(all)) => all.iter().flat_map(|(key, one)| [write(key), plain(one)]).collect(),
            (_, one) => return plain(one),
        };
        parts.join(&separator)
    }
}

/// Returns text unchanged, other values as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_style_writes_a_value_as_the_specification_says() {
        let (list, object) = (json!(["a", "b c", 3]), json!({"x": 1, "y": "b"}));
        let cases = [
            (Place::Query, None, None, &list, "q=a&q=b%20c&q=3"),
            (Place::Query, Some("form"), Some(false), &list, "q=a,b%20c,3"),
            (Place::Query, Some("spaceDelimited"), None, &list, "q=a%20b%20c%203"),
            (Place::Query, Some("pipeDelimited"), Some(false), &list, "q=a%7Cb%20c%7C3"),
            (Place::Query, None, None, &object, "x=1&y=b"),
            (Place::Query, Some("form"), Some(false), &object, "q=x,1,y,b"),
            (Place::Query, Some("deepObject"), Some(true), &object, "q[x]=1&q[y]=b"),
            (Place::Query, None, None, &json!(true), "q=true"),
            (Place::Query, None, None, &json!(null), ""),
        ];
        for (place, style, explode, value, expected) in cases {
            let pairs = Style::of(place, style, explode).expect("a style").pairs("q", value);
            let written: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(written.join("&"), expected, "{style:?} {explode:?}");
        }
        let joined = |explode| Style::of(Place::Path, None, explode).expect("a style").joined(&object);
        assert_eq!((joined(None), joined(Some(true))), ("x,1,y,b".to_owned(), "x=1,y=b".to_owned()));
        let commas = Style::of(Place::Path, None, None).expect("a style");
        assert_eq!(commas.escaped(&json!(["a,b", "c/d"])), "a%2Cb,c%2Fd", "what a part holds is no separator");
        assert_eq!(Style::of(Place::Path, Some("matrix"), None), None);
        assert_eq!(Style::of(Place::Header, Some("form"), None), None);
    }
}
