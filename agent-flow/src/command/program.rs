//! Parser for commands in a subset of Python: literals, names of literals, and calls
//! `tool.execute(..)`. The program is parsed to data and never executed.

use std::{collections::BTreeMap, panic::resume_unwind, thread};

use agent_tools::python::value;
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse};
use ruff_text_size::{Ranged, TextRange};
use serde_json::{Map, Value, json};

use crate::PlannedCall;

/// Maximum length of a program in bytes, and the stack size of the parser thread: Python's parser
/// limits only the depth of brackets, so `1+1+1` may be nested as deeply as its length permits, and
/// dropping the tree recurses as deeply.
const LONGEST: usize = 64 << 10;
const STACK: usize = 64 << 20;

/// Maximum nesting depth of expressions.
const DEEPEST: u16 = 64;

/// Maximum total size in bytes of the values that names are replaced by: nested names grow
/// exponentially.
const MOST_NAMED: usize = 1 << 20;

/// Maximum number of characters of the program quoted in an error.
const MOST_SHOWN: usize = 60;

/// Parses the calls of a program, in order.
pub(super) fn calls(program: &str) -> Result<Vec<PlannedCall>, String> {
    if program.len() > LONGEST {
        return Err(format!("it has {} bytes; {LONGEST} are the most", program.len()));
    }
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || read(&outdented(program)));
        reader
            .map_err(|_| "the machine has no thread to read it".to_owned())?
            .join()
            .unwrap_or_else(|e| resume_unwind(e))
    })
}

fn read(program: &str) -> Result<Vec<PlannedCall>, String> {
    let told = |Problem { place, what }| {
        let line = program[..place.start().to_usize()].matches('\n').count() + 1;
        format!("line {line}: {what}; write only `execution = tool.execute(name=value, ..)` with literal values")
    };
    let options = ParseOptions::from(Mode::Module).with_max_recursion_depth(DEEPEST);
    let parsed = parse(program, options).map_err(|e| told(Problem::new(&e.location, e.error.to_string())))?;
    let mut reader = Reader { text: program, names: BTreeMap::new(), named: 0, calls: Vec::new() };
    let module = parsed.try_into_module().expect("a module was asked for");
    module.suite().iter().try_for_each(|stmt| reader.statement(stmt)).map_err(told)?;
    Ok(reader.calls)
}

/// Removes the common indentation of all lines: a program in a list or a code fence is often
/// indented as a whole.
fn outdented(program: &str) -> String {
    let blank = |line: &&str| line.trim().is_empty();
    let margin = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common = program.lines().filter(|line| !blank(line)).map(margin).min().unwrap_or_default();
    let lines = program.split_inclusive('\n').map(|line| line.get(common.min(margin(line))..).unwrap_or_default());
    lines.collect()
}

struct Reader<'a> {
    text: &'a str,
    /// Values of names: literals, and references to results.
    names: BTreeMap<&'a str, Value>,
    /// Total size in bytes of the values used for names so far.
    named: usize,
    calls: Vec<PlannedCall>,
}

/// A problem and its position.
struct Problem {
    place: TextRange,
    what: String,
}

impl<'a> Reader<'a> {
    /// Parses `name = literal`, `name = tool.execute(..)`, or `tool.execute(..)`.
    fn statement(&mut self, stmt: &'a Stmt) -> Result<(), Problem> {
        match stmt {
            Stmt::Expr(line) => match self.call(&line.value)? {
                Some(_) => Ok(()),
                None => Err(Problem::new(stmt, format!("'{}' is no call of a tool", self.shown(stmt)))),
            },
            Stmt::Assign(assign) => {
                let value = match self.call(&assign.value)? {
                    Some(result) => result,
                    None => self.value(&assign.value)?,
                };
                for target in &assign.targets {
                    let Expr::Name(name) = target else {
                        return Err(Problem::new(target, format!("'{}' is no name", self.shown(target))));
                    };
                    self.names.insert(&name.id, value.clone());
                }
                Ok(())
            }
            _ => Err(Problem::new(stmt, format!("'{}' is neither an assignment nor a call", self.shown(stmt)))),
        }
    }

    /// Adds the call `tool.execute(name=value, ..)`, and returns a reference to its result; `None`
    /// for any other expression.
    fn call(&mut self, expr: &Expr) -> Result<Option<Value>, Problem> {
        let Expr::Call(ExprCall { func, arguments: given, .. }) = expr else { return Ok(None) };
        let Expr::Attribute(function) = &**func else { return Ok(None) };
        if !matches!(&*function.value, Expr::Name(name) if name.id == "tool") {
            return Ok(None);
        }
        if function.attr.as_str() != "execute" {
            return Err(Problem::new(function, "a tool has only `execute(..)`"));
        }
        if let Some(arg) = given.args.first() {
            return Err(Problem::new(arg, "an argument has no name"));
        }
        let mut arguments = Map::new();
        for keyword in &given.keywords {
            let Some(name) = &keyword.arg else { return Err(Problem::new(keyword, "an argument has no name")) };
            if arguments.insert(name.to_string(), self.value(&keyword.value)?).is_some() {
                return Err(Problem::new(keyword, format!("argument '{name}' is given twice")));
            }
        }
        let id = format!("call-{}", self.calls.len() + 1);
        let result = json!({"$ref": id});
        self.calls.push(PlannedCall { id, arguments });
        Ok(Some(result))
    }

    /// Parses a literal, which may contain names and the constants of JSON.
    fn value(&mut self, expr: &Expr) -> Result<Value, Problem> {
        let (names, used) = (&self.names, &mut self.named);
        let read = value(expr, &mut |name| match (names.get(name), name) {
            (Some(value), _) => {
                *used = used.saturating_add(value.to_string().len());
                // Beyond the limit nothing is copied, and the program is rejected.
                Some(if *used > MOST_NAMED { Value::Null } else { value.clone() })
            }
            (None, "true") => Some(true.into()),
            (None, "false") => Some(false.into()),
            (None, "null") => Some(Value::Null),
            (None, _) => None,
        });
        if self.named > MOST_NAMED {
            return Err(Problem::new(expr, format!("its names stand for more than {MOST_NAMED} bytes")));
        }
        read.map_err(|part| Problem::new(part, format!("'{}' is no literal and was not assigned", self.shown(part))))
    }

    /// Quotes a part of the program.
    fn shown(&self, part: &impl Ranged) -> &'a str {
        let text = self.text[part.range()].lines().next().unwrap_or_default();
        text.char_indices().nth(MOST_SHOWN).map_or(text, |(end, _)| &text[..end])
    }
}

impl Problem {
    fn new(place: &impl Ranged, what: impl Into<String>) -> Self {
        Self { place: place.range(), what: what.into() }
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
first = tool.execute(query="x\u00e9\n", limit=limit, deep={"k": [1, -2.5, +0x1f, True, None, (3,)]})
execution = tool.execute(
    rows=first,   # what the first gave
    kinds=kinds,
); tool.execute(json=[true, false, null])
"#;
        let calls = calls(program).expect("is read");
        let arguments: Vec<_> = calls.iter().map(|call| json!(call.arguments)).collect();
        assert_eq!(
            arguments,
            [
                json!({"query": "xé\n", "limit": 1000, "deep": {"k": [1, -2.5, 31, true, null, [3]]}}),
                json!({"rows": {"$ref": "call-1"}, "kinds": ["a", "b", "c\nd", "\\n", "ef"]}),
                json!({"json": [true, false, null]}),
            ]
        );
    }

    #[test]
    fn a_program_may_be_indented_as_a_whole() {
        let calls = calls("    limit = 1\n\n    tool.execute(\n        a=limit)\n").expect("is read");
        assert_eq!(json!(calls[0].arguments), json!({"a": 1}));
    }

    #[test]
    fn everything_else_is_refused_with_its_line_and_nothing_is_run() {
        for (program, problem) in [
            ("import os", "line 1: 'import os' is neither an assignment nor a call"),
            ("x = 1\nos.system('rm')", "line 2: 'os.system('rm')' is no call of a tool"),
            ("execution = tool.run(a=1)", "a tool has only `execute(..)`"),
            ("execution = tool.execute('a')", "an argument has no name"),
            ("execution = tool.execute(**{'a': 1})", "an argument has no name"),
            ("execution = tool.execute(a=f'{x}')", "'f'{x}'' is no literal"),
            ("execution = tool.execute(a=b'x')", "'b'x'' is no literal"),
            ("execution = tool.execute(a=open('x'))", "'open('x')' is no literal and was not assigned"),
            ("execution = tool.execute(a=1 + 1)", "'1 + 1' is no literal"),
            ("execution = tool.execute(a={1: 2})", "'1' is no literal"),
            ("execution = tool.execute(a=1, a=2)", "line 1: "),
            ("execution = tool.execute(a='x", "line 1: "),
            ("for x in y: tool.execute(a=x)", "neither an assignment nor a call"),
            ("execution = tool.execute(a=1) if x else 2", "is no literal"),
            ("execution = tool.execute(a=1).b", "is no literal"),
            ("a.b = 1", "'a.b' is no name"),
            ("tool == 1", "'tool == 1' is no call of a tool"),
            (&format!("x = {}", "[".repeat(10_000)), "line 1: "),
            (&"x".repeat(LONGEST + 1), "are the most"),
        ] {
            let e = calls(program).expect_err(program);
            assert!(e.contains(problem), "{program}: {e}");
        }
        assert_eq!(calls("# nothing"), Ok(Vec::new()));
    }

    #[test]
    fn a_program_of_a_few_lines_takes_no_memory_of_the_machine() {
        let doubled: String = (1..60).map(|n| format!("x{n} = [x{0}, x{0}]\n", n - 1)).collect();
        let e = calls(&format!("x0 = 'a'\n{doubled}tool.execute(a=x59)")).expect_err("too much");
        assert!(e.contains("its names stand for more than"), "{e}");
        for (open, close) in
            [("1+", "1"), ("-", "1"), ("(", "1"), ("f(", "1"), ("not ", "x"), ("x.", "x"), ("lambda: ", "1")]
        {
            let deep = format!("x = {}{close}", open.repeat((LONGEST - 10) / open.len()));
            assert!(calls(&deep).is_err(), "{open}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"(tool\.execute|\(|\)|=|[a-z ]|'|"|\\|\n|\t|#|\[|\]|\{|\}|:|,|[0-9é-]){0,60}"#) {
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
