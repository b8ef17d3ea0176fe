//! Static analysis of a program.

use std::collections::BTreeSet;

use agent_tools::python;
use ruff_python_ast::{
    Alias, Comprehension, Expr, ExprCall, ExprContext, Parameter, Pattern, Stmt,
    visitor::{self, Visitor},
};
use ruff_python_parser::parse_module;
use serde_json::Value;

/// Facts about a program, from its source.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// True if it awaits anything: its calls then return futures, otherwise their results.
    pub(super) awaits: bool,
    /// Names that the program binds, anywhere.
    pub(super) bound: BTreeSet<String>,
    /// True if it has wildcard imports.
    pub(super) imports_all: bool,
    /// Calls of functions by name, in source order.
    pub(super) calls: Vec<Called>,
    /// Variables of comprehensions outside of functions, with their offsets.
    pub(super) comprehended: Vec<(usize, String)>,
    /// Number of functions around the visited node.
    depth: usize,
}

/// A call in a program's source.
#[derive(Debug)]
pub(super) struct Called {
    /// Offset in bytes from the program's start.
    pub(super) at: usize,
    pub(super) name: String,
    /// Positional arguments, with the values of constants.
    pub(super) args: Vec<Option<Value>>,
    pub(super) kwargs: Vec<(String, Option<Value>)>,
    /// True if there may be more arguments, as with `*args` and `**kwargs`.
    pub(super) is_open: bool,
}

impl Source {
    /// Analyses a program; returns `None` if it is not valid Python, which the interpreter reports
    /// better.
    pub(super) fn read(code: &str) -> Option<Self> {
        let parsed = parse_module(code).ok()?;
        let mut source = Self::default();
        source.visit_body(parsed.suite());
        Some(source)
    }

    fn bind(&mut self, name: &str) {
        self.bound.insert(name.to_owned());
    }
}

impl<'a> Visitor<'a> for Source {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.bind(&function.name);
                self.depth += 1;
                visitor::walk_stmt(self, stmt);
                self.depth -= 1;
                return;
            }
            Stmt::ClassDef(class) => self.bind(&class.name),
            Stmt::For(each) => self.awaits |= each.is_async,
            Stmt::With(with) => self.awaits |= with.is_async,
            Stmt::Try(tried) => {
                for handler in &tried.handlers {
                    let handler = handler.as_except_handler().and_then(|handler| handler.name.as_ref());
                    handler.into_iter().for_each(|name| self.bind(name));
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                self.awaits |= module.split('.').next() == Some("asyncio");
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let first = alias.name.split('.').next().unwrap_or_default();
        self.awaits |= first == "asyncio";
        self.imports_all |= first == "*";
        self.bind(alias.asname.as_ref().map_or(first, |name| name.as_str()));
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bind(&parameter.name);
        visitor::walk_parameter(self, parameter);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.awaits |= comprehension.is_async;
        if self.depth == 0 {
            variables(&comprehension.target, &mut self.comprehended);
        }
        visitor::walk_comprehension(self, comprehension);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        name.into_iter().for_each(|name| self.bind(name));
        visitor::walk_pattern(self, pattern);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Await(_) => self.awaits = true,
            Expr::Name(name) if name.ctx != ExprContext::Load => self.bind(&name.id),
            Expr::Call(call) => self.calls.extend(Called::read(call)),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

impl Called {
    fn read(call: &ExprCall) -> Option<Self> {
        let Expr::Name(name) = &*call.func else { return None };
        let given = &call.arguments;
        let is_open =
            given.args.iter().any(Expr::is_starred_expr) || given.keywords.iter().any(|key| key.arg.is_none());
        let by_position = given.args.iter().take_while(|arg| !arg.is_starred_expr());
        let by_name =
            given.keywords.iter().filter_map(|key| Some((key.arg.as_ref()?.to_string(), constant(&key.value))));
        Some(Self {
            at: name.range.start().to_usize(),
            name: name.id.to_string(),
            args: by_position.map(constant).collect(),
            kwargs: by_name.collect(),
            is_open,
        })
    }
}

/// Collects the variables of a comprehension's target.
fn variables(target: &Expr, found: &mut Vec<(usize, String)>) {
    match target {
        Expr::Name(name) => found.push((name.range.start().to_usize(), name.id.to_string())),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|part| variables(part, found)),
        Expr::List(list) => list.elts.iter().for_each(|part| variables(part, found)),
        Expr::Starred(rest) => variables(&rest.value, found),
        _ => {}
    }
}

/// Returns the value of an expression that is constant, including everything nested in it.
fn constant(expr: &Expr) -> Option<Value> {
    python::value(expr, &mut |_| None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_texts_and_comments_are_no_code() {
        let awaits = |code: &str| Source::read(code).expect("is Python").awaits;
        for code in [
            "x = await f()",
            "import asyncio",
            "from asyncio import gather",
            "'a' if await f() else ''",
            "'''\n'''\nawait f()",
            "\"\\\"\"; await f()",
            "f'{await g()}'",
            "async def f():\n    async for x in y: pass",
            "async def f(): return [x async for x in y]",
        ] {
            assert!(awaits(code), "{code}");
        }
        for code in [
            "f()",
            "# await\nf()",
            "'await'",
            "\"\"\"\nawait \"x\" \n\"\"\"",
            "awaited = 1",
            "'a\\'await'",
            "import json",
            "f'{g()} await '",
        ] {
            assert!(!awaits(code), "{code}");
        }
        assert!(Source::read("'").is_none());
    }

    #[test]
    fn every_way_to_name_something_is_known() {
        let code = "
import a.b, c as d
from e import f as g, h
i = j, *k = [1]
for l in m: pass
def n(o, *p, q=1, **r): pass
class s: pass
with t as u: pass
try: pass
except v as w: pass
x: int = 1
[y for y in (lambda z: z)]
(aa := 1)
match i:
    case {'k': ab, **ac}: pass
    case [ad, *ae] | ad as af: pass
del ag
";
        let bound = Source::read(code).expect("is Python").bound;
        let wanted = "a aa ab ac ad ae af ag d g h i j k l n o p q r s u w x y z";
        assert_eq!(bound.into_iter().collect::<Vec<_>>().join(" "), wanted);
    }

    #[test]
    fn constants_among_arguments_are_read() {
        let code = "f(1, -2.5, x, 'a' 'b', [True, None], {'k': (1,)}, k={'a': x}, n=-3)\ng(*a, **b)";
        let calls = Source::read(code).expect("is Python").calls;
        let args: Vec<_> = calls[0].args.iter().map(|arg| arg.as_ref().map(ToString::to_string)).collect();
        let args: Vec<_> = args.iter().map(|arg| arg.as_deref().unwrap_or("?")).collect();
        assert_eq!(args, ["1", "-2.5", "?", "\"ab\"", "[true,null]", "{\"k\":[1]}"]);
        assert_eq!(calls[0].kwargs, [("k".to_owned(), None), ("n".to_owned(), Some((-3).into()))]);
        assert!(calls[1].is_open && !calls[0].is_open);
    }
}
