//! Static checks of a program's calls before it runs: running a program only halfway is worse than
//! not running it.

use std::collections::BTreeMap;

use agent_core::ToolSpec;
use agent_tools::ArgumentSchema;
use ruff_python_stdlib::builtins::is_python_builtin;
use serde_json::{Map, Value, json};

use super::{
    functions::{Function, PYTHON},
    source::{Called, Source},
    stubs::signature,
};

/// Maximum number of reported problems.
const MOST: usize = 10;

const NOT_RUN: &str = "The program was not run and made no call, since this is wrong in it:";

/// Returns a description of the problems in a program's calls, for its author; `None` if no problem
/// is found.
///
/// Names that the program itself binds are not checked, and neither are arguments that are not
/// constants.
pub(super) fn problems(code: &str, source: &Source, tools: &[(Function, &ToolSpec)]) -> Option<String> {
    let mut schemas = BTreeMap::new();
    let unbound = source.calls.iter().filter(|call| !source.bound.contains(&call.name));
    let wrong = unbound.filter_map(|call| {
        let what = match tools.iter().find(|(function, _)| function.name == call.name) {
            Some((function, tool)) => {
                let what = wrong_arguments(call, function).or_else(|| {
                    let schema = schemas.entry(&function.name).or_insert_with(|| of_constants(tool));
                    wrong_constants(call, function, schema.as_ref()?)
                });
                format!("TypeError: {}; it is {}", what?, signature(function, tool))
            }
            None if source.imports_all || is_python_builtin(&call.name, PYTHON, false) => return None,
            None => {
                let names: Vec<_> = tools.iter().map(|(function, _)| &*function.name).collect();
                let name = &call.name;
                format!("NameError: name '{name}' is not defined; the functions are {}", names.join(", "))
            }
        };
        Some((call.at, what))
    });
    // Outside of functions, the interpreter resolves such a variable to the Python builtin without
    // an error.
    let taken =
        source.comprehended.iter().filter(|(_, name)| is_python_builtin(name, PYTHON, false)).map(|(at, name)| {
            (
                *at,
                format!(
                    "NameError: '{name}' is a function of Python: call the variable of the comprehension otherwise"
                ),
            )
        });
    let mut wrong: Vec<_> = wrong.take(MOST).chain(taken.take(MOST)).collect();
    wrong.sort_unstable();
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let wrong: Vec<_> = wrong.iter().take(MOST).map(|(at, what)| format!("line {}: {what}", line(*at))).collect();
    (!wrong.is_empty()).then(|| format!("{NOT_RUN}\n{}", wrong.join("\n")))
}

/// Returns the problem with the set of arguments.
fn wrong_arguments(call: &Called, function: &Function) -> Option<String> {
    let some = || Value::Bool(true);
    let args = call.args.iter().map(|_| some());
    let mut kwargs: Vec<_> = call.kwargs.iter().map(|(name, _)| (name.clone(), some())).collect();
    if call.is_open {
        // An unpacked argument may supply the missing ones.
        let given = |name: &str| kwargs.iter().any(|(key, _)| key == name);
        let unseen = function.params.iter().skip(call.args.len());
        let unseen: Vec<_> = unseen.filter(|param| !given(&param.name) && !given(&param.field)).collect();
        kwargs.extend(unseen.into_iter().map(|param| (param.field.clone(), some())));
    }
    function.arguments(args.collect(), kwargs).err()
}

/// Compiles the part of a tool's schema that applies to constants, whatever the other arguments
/// are.
fn of_constants(tool: &ToolSpec) -> Option<ArgumentSchema> {
    let mut parameters = json!({"type": "object", "additionalProperties": true});
    for word in ["properties", "$defs", "definitions"] {
        if let Some(part) = tool.parameters.get(word) {
            parameters[word] = part.clone();
        }
    }
    ArgumentSchema::compile(&ToolSpec::new(tool.name.as_str(), "", parameters)).ok()
}

/// Returns the problem with the constants among the arguments. Values that a tool call would
/// convert are accepted here, too.
fn wrong_constants(call: &Called, function: &Function, schema: &ArgumentSchema) -> Option<String> {
    let by_position = function.params.iter().zip(&call.args).map(|(param, value)| (param, value.as_ref()));
    let by_name = call.kwargs.iter().filter_map(|(key, value)| Some((function.param(key)?, value.as_ref())));
    let given = by_position.chain(by_name).filter_map(|(param, value)| Some((param, value?)));
    // Where `None` omits an argument, any type accepts it.
    let given = given.filter(|(param, value)| !value.is_null() || param.required || param.nullable);
    let given: Map<_, _> = given.map(|(param, value)| (param.field.clone(), value.clone())).collect();
    if given.is_empty() {
        return None;
    }
    let read = schema.parse(&Value::Object(given).to_string()).value;
    let wrong = schema.check(&read, &[]).err()?;
    let what = wrong.message().split_once(": ").map_or(wrong.message(), |(_, what)| what);
    Some(format!("{}(): {}", function.name, what.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_mode::functions::functions;

    fn told(code: &str) -> Option<String> {
        let place = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let find = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer", "maximum": 50},
                "where": {"$ref": "#/$defs/Place"},
            },
            "required": ["query"],
            "additionalProperties": false,
            "$defs": {"Place": place},
        });
        let tools = [ToolSpec::new("find", "", find), ToolSpec::new("any", "", json!({"type": "object"}))];
        problems(code, &Source::read(code).expect("is Python"), &functions(&tools))
    }

    #[test]
    fn wrong_calls_are_told_with_their_line_and_what_is_allowed() {
        let find = "it is find(query: str, limit: int = ..., where: dict = ...)";
        for (code, wanted) in [
            (
                "x = 1\nserch('a')",
                "line 2: NameError: name 'serch' is not defined; the functions are any_, find".into(),
            ),
            (
                "find('a', limt=5)",
                format!(
                    "line 1: TypeError: find() got an unexpected keyword argument 'limt': it has (query, limit, where); {find}"
                ),
            ),
            ("await find(limit=5)", format!("line 1: TypeError: find() missing a required argument: 'query'; {find}")),
            (
                "def f():\n  return find('a', 1, {}, 2)",
                format!("line 2: TypeError: find() takes 3 positional arguments but 4 were given; {find}"),
            ),
            (
                "find('a', query='b')",
                format!("line 1: TypeError: find() got multiple values for argument 'query'; {find}"),
            ),
            (
                "find(x, limit='many')",
                format!("line 1: TypeError: find(): 'limit' must be an integer, got \"many\"; {find}"),
            ),
            ("find('a', limit=51)", "line 1: TypeError: find(): 'limit'".into()),
            ("find('a', where={'town': 'x'})", "line 1: TypeError: find(): 'where".into()),
            (
                "x = 1\n[any_(x=id) for y, (id, *z) in x]",
                "line 2: NameError: 'id' is a function of Python: call the variable of the comprehension otherwise"
                    .into(),
            ),
            ("find(*x, limt=5)", "line 1: TypeError: find() got an unexpected keyword argument 'limt'".into()),
        ] {
            let told = told(code).unwrap_or_else(|| panic!("{code} is let through"));
            let told = told.strip_prefix(NOT_RUN).expect("says so").trim_start();
            assert!(told.starts_with(&wanted), "{code}: {told}");
        }
    }

    #[test]
    fn what_may_be_right_is_let_through() {
        for code in [
            "find('a', 5)",
            "find(query='a', limit='5', where={'city': x})",
            "find('a', limit=None)",
            "find(*x)",
            "find(**x)",
            "find('a', *x)",
            "find(x, y, z)",
            "any_(whatever=1)",
            "def serch(q): return find(q)\nserch('a')",
            "def find(): pass\nfind()",
            "from x import *\nserch()",
            "print(len(sorted([1])), ValueError('x'))",
            "x.serch()",
            "def f():\n    return [id for id in x]\nfor id in x: any_(x=id)",
            "for f in [find]: f('a')",
            "try: pass\nexcept KeyError as e: e()",
        ] {
            assert_eq!(told(code), None, "{code}");
        }
        let many = "serch()\n".repeat(100);
        assert_eq!(told(&many).expect("is wrong").lines().count(), 1 + MOST);
    }
}
