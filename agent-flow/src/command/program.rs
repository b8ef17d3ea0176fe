//! The subset of Python in which commands may be written: literals, names of literals, and calls `tool.execute(..)`. It is
//! parsed into data and never run.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value, json};

use crate::PlannedCall;

/// Deepest nesting of lists and dictionaries.
const DEEPEST: usize = 64;

/// The calls of a program, in order.
pub(super) fn calls(program: &str) -> Result<Vec<PlannedCall>, String> {
    let mut parser = Parser { text: program, at: 0, names: BTreeMap::new(), calls: Vec::new() };
    parser.statements().map_err(|problem| {
        let line = program[..parser.at.min(program.len())].matches('\n').count() + 1;
        format!("line {line}: {problem}; write only `execution = tool.execute(name=value, ..)` with literal values")
    })?;
    Ok(parser.calls)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// What names stand for: literals, and references to results.
    names: BTreeMap<&'a str, Value>,
    calls: Vec<PlannedCall>,
}

impl<'a> Parser<'a> {
    fn statements(&mut self) -> Result<(), String> {
        loop {
            self.skip(true);
            if self.rest().is_empty() {
                return Ok(());
            }
            self.statement()?;
            self.skip(false);
            if !self.rest().is_empty() && !self.take(";") && !self.take("\n") {
                return Err("there is more than an assignment or a call".into());
            }
        }
    }

    /// `name = literal`, `name = tool.execute(..)`, or `tool.execute(..)`.
    fn statement(&mut self) -> Result<(), String> {
        let name = self.name().ok_or("there is neither an assignment nor a call")?;
        self.skip(false);
        if name == "tool" && self.take(".") {
            return self.call().map(drop);
        }
        if self.rest().starts_with("==") || !self.take("=") {
            return Err(format!("'{name}' is neither assigned nor a call"));
        }
        self.skip(false);
        let start = self.at;
        let value = match self.name() {
            Some("tool") if self.take(".") => self.call()?,
            _ => {
                self.at = start;
                self.value(0)?
            }
        };
        self.names.insert(name, value);
        Ok(())
    }

    /// `execute(name=value, ..)`: adds the call and gives a reference to its result.
    fn call(&mut self) -> Result<Value, String> {
        if self.name() != Some("execute") || !self.take("(") {
            return Err("a tool has only `execute(..)`".into());
        }
        let mut arguments = Map::new();
        self.list(')', |parser| {
            let start = parser.at;
            let name = parser.name().filter(|_| {
                parser.skip(true);
                !parser.rest().starts_with("==") && parser.take("=")
            });
            let Some(name) = name else {
                parser.at = start;
                return Err("an argument has no name".into());
            };
            parser.skip(true);
            match arguments.insert(name.to_owned(), parser.value(0)?) {
                Some(_) => Err(format!("argument '{name}' is given twice")),
                None => Ok(()),
            }
        })?;
        let id = format!("call-{}", self.calls.len() + 1);
        let result = json!({"$ref": id});
        self.calls.push(PlannedCall { id, arguments });
        Ok(result)
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err("it is nested too deeply".into());
        }
        match self.rest().chars().next() {
            Some('[') => self.items(']', depth),
            Some('(') => self.items(')', depth),
            Some('{') => self.dictionary(depth),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            _ => match self.string()? {
                Some(text) => Ok(Value::String(text)),
                None => self.named(),
            },
        }
    }

    fn named(&mut self) -> Result<Value, String> {
        match self.name() {
            Some("True" | "true") => Ok(Value::Bool(true)),
            Some("False" | "false") => Ok(Value::Bool(false)),
            Some("None" | "null") => Ok(Value::Null),
            Some(name) => {
                self.names.get(name).cloned().ok_or_else(|| format!("'{name}' is no literal and was not assigned"))
            }
            None => Err("there is no value".into()),
        }
    }

    fn items(&mut self, close: char, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.list(close, |parser| {
            items.push(parser.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Value::Array(items))
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut fields = Map::new();
        self.list('}', |parser| {
            let key = parser.string()?.ok_or("a key of a dictionary is no string")?;
            parser.skip(true);
            if !parser.take(":") {
                return Err("a key of a dictionary has no value".into());
            }
            parser.skip(true);
            fields.insert(key, parser.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Value::Object(fields))
    }

    /// Items with commas between them, up to `close`.
    fn list(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        loop {
            self.skip(true);
            if self.rest().starts_with(close) {
                self.at += close.len_utf8();
                return Ok(());
            }
            item(self)?;
            self.skip(true);
            if !self.take(",") && !self.rest().starts_with(close) {
                return Err(format!("there is neither ',' nor '{close}' after a value"));
            }
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-' | '+'))
            .unwrap_or(rest.len());
        let digits = rest[..end].replace('_', "");
        let digits = digits.strip_prefix('+').unwrap_or(&digits);
        let whole = digits.parse::<i64>().map(Number::from).ok();
        let number = whole.or_else(|| Number::from_f64(digits.parse().ok()?));
        self.at += end;
        number.map(Value::Number).ok_or_else(|| format!("'{}' is no number", &rest[..end]))
    }

    /// A string literal, and those that follow it; `None` if there is none.
    fn string(&mut self) -> Result<Option<String>, String> {
        let mut text = None;
        loop {
            let Some((raw, quote)) = self.opening()? else { return Ok(text) };
            self.text_until(quote, raw, text.get_or_insert_default())?;
            let after = self.at;
            self.skip(true); // strings side by side are one
            if self.opening_ahead().is_none() {
                self.at = after;
                return Ok(text);
            }
        }
    }

    /// Takes the opening of a string: whether it is raw, and its quote.
    fn opening(&mut self) -> Result<Option<(bool, &'static str)>, String> {
        let Some((prefix, quote)) = self.opening_ahead() else { return Ok(None) };
        self.at += prefix.len() + quote.len();
        match prefix.to_ascii_lowercase().as_str() {
            "" | "u" => Ok(Some((false, quote))),
            "r" => Ok(Some((true, quote))),
            _ => Err(format!("a string with the prefix '{prefix}' is no literal")),
        }
    }

    fn opening_ahead(&self) -> Option<(&'a str, &'static str)> {
        let rest = self.rest();
        let prefix = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
        let quoted = &rest[prefix.len()..];
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| quoted.starts_with(quote))?;
        (prefix.len() <= 2).then_some((prefix, quote))
    }

    fn text_until(&mut self, quote: &str, raw: bool, text: &mut String) -> Result<(), String> {
        loop {
            if self.take(quote) {
                return Ok(());
            }
            let c = self.next().ok_or("a string has no end")?;
            match c {
                '\n' if quote.len() == 1 => return Err("a string has no end".into()),
                '\\' if raw => {
                    text.push(c);
                    text.extend(self.next());
                }
                '\\' => self.escape(text)?,
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let c = self.next().ok_or("a string has no end")?;
        match c {
            '\n' => {}
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            '0' => text.push('\0'),
            'x' => text.push(self.code_point(2)?),
            'u' => text.push(self.code_point(4)?),
            'U' => text.push(self.code_point(8)?),
            '\\' | '\'' | '"' => text.push(c),
            other => text.extend(['\\', other]), // as Python does
        }
        Ok(())
    }

    fn code_point(&mut self, digits: usize) -> Result<char, String> {
        let hex = self.rest().get(..digits).ok_or("an escape is cut off")?;
        let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        self.at += digits;
        c.ok_or_else(|| format!("'{hex}' is no character"))
    }

    // --- the text ---

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, what: &str) -> bool {
        let there = self.rest().starts_with(what);
        if there {
            self.at += what.len();
        }
        there
    }

    /// Skips blanks and comments; line breaks too, where they mean nothing.
    fn skip(&mut self, lines: bool) {
        loop {
            let rest = self.rest();
            let blanks =
                rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() && (lines || c != '\n')).len();
            self.at += blanks;
            if self.take("\\\n") || (lines && self.take(";")) {
                continue;
            }
            if !self.rest().starts_with('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        is_name.then(|| {
            self.at += end;
            name
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_names_and_results_are_read() {
        let program = r#"
# First the list, then the rest.
limit = 1_000
kinds = ["a", 'b', """c
d""", r"\n", "e" "f"]
first = tool.execute(query="x\u00e9\n", limit=limit, deep={"k": [1, -2.5, True, None, (3,)]})
execution = tool.execute(
    rows=first,   # what the first gave
    kinds=kinds,
); tool.execute()
"#;
        let calls = calls(program).expect("is read");
        let arguments: Vec<_> = calls.iter().map(|call| json!(call.arguments)).collect();
        assert_eq!(
            arguments,
            [
                json!({"query": "xé\n", "limit": 1000, "deep": {"k": [1, -2.5, true, null, [3]]}}),
                json!({"rows": {"$ref": "call-1"}, "kinds": ["a", "b", "c\nd", "\\n", "ef"]}),
                json!({}),
            ]
        );
    }

    #[test]
    fn everything_else_is_refused_with_its_line_and_nothing_is_run() {
        for (program, problem) in [
            ("import os", "line 1: 'import' is neither assigned nor a call"),
            ("x = 1\nos.system('rm')", "line 2: 'os' is neither assigned nor a call"),
            ("execution = tool.run(a=1)", "a tool has only `execute(..)`"),
            ("execution = tool.execute('a')", "an argument has no name"),
            ("execution = tool.execute(a=f'{x}')", "prefix 'f' is no literal"),
            ("execution = tool.execute(a=open('x'))", "'open' is no literal and was not assigned"),
            ("execution = tool.execute(a=1 + 1)", "neither ',' nor ')'"),
            ("execution = tool.execute(a=1, a=2)", "given twice"),
            ("execution = tool.execute(a='x", "a string has no end"),
            ("for x in y: tool.execute(a=x)", "'for' is neither assigned nor a call"),
            ("execution = tool.execute(a=1) if x else 2", "more than an assignment or a call"),
            ("execution = tool.execute(a=1).b", "more than an assignment or a call"),
            ("tool == 1", "'tool' is neither assigned nor a call"),
            (&format!("x = {}", "[".repeat(10_000)), "nested too deeply"),
        ] {
            let e = calls(program).expect_err(program);
            assert!(e.contains(problem), "{program}: {e}");
        }
        assert_eq!(calls("# nothing"), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"(tool\.execute|\(|\)|=|[a-z ]|'|"|\\|\n|#|\[|\]|\{|\}|:|,|[0-9é-]){0,60}"#) {
            let _ = calls(&text);
        }

        #[test]
        fn any_text_argument_comes_out_as_it_went_in(text in any::<String>()) {
            let quoted: String = text.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
            let calls = calls(&format!("execution = tool.execute(a=\"{quoted}\")")).expect("is read");
            prop_assert_eq!(&calls[0].arguments["a"], &Value::String(text));
        }
    }
}
