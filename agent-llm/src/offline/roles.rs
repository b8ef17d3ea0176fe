//! Roles of tools, derived from their names, descriptions and schemas.

use agent_core::ToolSpec;
use serde_json::{Value, json};

use super::{
    agents::{Agent, agents},
    params::{Params, has, name_words},
};

/// Words in the name of a tool with side effects: such a tool is never called.
const CHANGES: &[&str] = &[
    "add", "apply", "bash", "create", "delete", "edit", "exec", "execute", "insert", "move", "patch", "post", "put",
    "remove", "rename", "replace", "run", "save", "send", "set", "shell", "sql", "update", "write",
];
const SEARCHES: &[&str] =
    &["find", "finds", "grep", "lookup", "look", "matching", "query", "retrieve", "search", "searches"];
const LISTS: &[&str] = &["dir", "find", "glob", "list", "lists", "ls", "tree"];
const READS: &[&str] = &["cat", "fetch", "get", "load", "open", "opens", "read", "reads", "show", "view"];

const REGEX: &[&str] = &["pattern", "regex"];
const QUERY: &[&str] = &["query", "q", "search", "keywords", "keyword", "terms", "text"];
const GLOB: &[&str] = &["glob", "globpattern"];
const PATH: &[&str] = &["path", "file", "filepath", "filename"];
const RESULTS: &[&str] = &["maxresults", "limit", "headlimit", "count"];
const START: &[&str] = &["startline", "start", "firstline", "fromline", "linestart", "offset", "from"];
const END: &[&str] = &["endline", "end", "lastline", "toline", "lineend", "to"];
const DEPTH: &[&str] = &["depth", "maxdepth", "levels"];
const COUNT: &[&str] = &["limit", "count", "lines", "maxlines", "numlines"];

/// Maximum depth of listed folders.
const LEVELS: u32 = 3;

/// Usable tools, by role.
#[derive(Debug, Default)]
pub(super) struct Roles<'a> {
    pub(super) search: Option<Search<'a>>,
    pub(super) find: Option<Find<'a>>,
    pub(super) list: Option<List<'a>>,
    pub(super) read: Option<Read<'a>>,
    pub(super) agents: Vec<Agent<'a>>,
}

/// A planned call.
#[derive(Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) tool: String,
    pub(super) args: Value,
}

impl Wanted {
    pub(super) fn new(tool: &str, args: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self { tool: tool.to_owned(), args: Value::Object(args.into_iter().collect()) }
    }
}

/// Tool that searches file contents.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) tool: &'a str,
    pub(super) param: &'a str,
    /// True if it takes a regular expression, false for plain words.
    pub(super) regex: bool,
    /// Parameter that selects the files to search.
    glob: Option<&'a str>,
    /// Parameter for the maximum number of lines, with its upper bound.
    most: Option<(&'a str, u64)>,
}

impl Search<'_> {
    pub(super) fn call(&self, what: &str) -> Wanted {
        let most = self.most.map(|(param, most)| (param.to_owned(), most.into()));
        Wanted::new(self.tool, std::iter::once((self.param.to_owned(), what.into())).chain(most))
    }

    /// Returns a call that searches the files matching `glob`; `None` if the tool cannot restrict
    /// its search.
    pub(super) fn call_within(&self, what: &str, glob: &str) -> Option<Wanted> {
        let mut call = self.call(what);
        call.args[self.glob?] = glob.into();
        Some(call)
    }
}

/// Tool that finds files by name.
#[derive(Debug)]
pub(super) struct Find<'a> {
    pub(super) tool: &'a str,
    param: &'a str,
}

impl Find<'_> {
    pub(super) fn call(&self, glob: &str) -> Wanted {
        Wanted::new(self.tool, [(self.param.to_owned(), glob.into())])
    }
}

/// Tool that lists files.
#[derive(Debug)]
pub(super) struct List<'a> {
    pub(super) tool: &'a str,
    depth: Option<&'a str>,
}

impl List<'_> {
    pub(super) fn call(&self) -> Wanted {
        Wanted::new(self.tool, self.depth.map(|param| (param.to_owned(), json!(LEVELS))))
    }
}

/// Tool that reads a file, or a range of its lines.
#[derive(Debug)]
pub(super) struct Read<'a> {
    pub(super) tool: &'a str,
    pub(super) path: &'a str,
    pub(super) start: Option<&'a str>,
    end: Option<&'a str>,
    count: Option<&'a str>,
}

impl Read<'_> {
    pub(super) fn call(&self, path: &str, first: u32, last: u32) -> Wanted {
        let last_of =
            [(self.start, first), (self.end, last), (self.count.filter(|_| self.end.is_none()), last - first + 1)];
        let range = last_of.into_iter().filter_map(|(param, line)| Some((param?.to_owned(), json!(line))));
        Wanted::new(self.tool, std::iter::once((self.path.to_owned(), json!(path))).chain(range))
    }
}

impl<'a> Roles<'a> {
    /// Assigns each role to the first suitable tool.
    pub(super) fn of(tools: &'a [ToolSpec]) -> Self {
        let mut roles = Self::default();
        for tool in tools {
            let name = name_words(&tool.name);
            if has(CHANGES, &name) {
                continue;
            }
            let params = Params::of(tool);
            let agents = agents(tool, &params);
            if !agents.is_empty() {
                roles.agents.extend(agents);
            } else if let Some(search) = search(tool, &name, &params) {
                roles.search.get_or_insert(search);
            } else if let Some(find) = find(tool, &params) {
                roles.find.get_or_insert(find);
            } else if let Some(read) = read(tool, &name, &params) {
                roles.read.get_or_insert(read);
            } else if has(LISTS, &name) && params.need_only(&[]) {
                roles.list.get_or_insert(List { tool: &tool.name, depth: params.first_of(DEPTH) });
            }
        }
        roles
    }

    pub(super) fn is_empty(&self) -> bool {
        self.search.is_none()
            && self.find.is_none()
            && self.list.is_none()
            && self.read.is_none()
            && self.agents.is_empty()
    }
}

fn search<'a>(tool: &'a ToolSpec, name: &[String], params: &Params<'a>) -> Option<Search<'a>> {
    let says_so = || has(SEARCHES, name) || has(SEARCHES, &name_words(&tool.description));
    let param = params.first_of(REGEX).or_else(|| params.first_of(QUERY).filter(|_| says_so()))?;
    let regex = params.is_about(param, tool, &["regex", "regular expression"]);
    let glob = params.is_about(param, tool, &["glob"]);
    let fits = params.need_only(&[param]) && (regex || !glob);
    let regex = regex || has(&["grep"], name);
    let most = params.first_of(RESULTS).and_then(|most| Some((most, params.schema(most)?.get("maximum")?.as_u64()?)));
    let glob = params.first_of(GLOB);
    fits.then_some(Search { tool: &tool.name, param, regex, glob, most })
}

fn find<'a>(tool: &'a ToolSpec, params: &Params<'a>) -> Option<Find<'a>> {
    let by_pattern = || params.first_of(REGEX).filter(|param| params.is_about(param, tool, &["glob"]));
    let param = params.first_of(GLOB).or_else(by_pattern)?;
    params.need_only(&[param]).then_some(Find { tool: &tool.name, param })
}

fn read<'a>(tool: &'a ToolSpec, name: &[String], params: &Params<'a>) -> Option<Read<'a>> {
    let path = params.first_of(PATH)?;
    let [start, end, count] = [START, END, COUNT].map(|names| params.first_of(names));
    let fillable: Vec<_> = [Some(path), start, end, count].into_iter().flatten().collect();
    let says_so = has(READS, name) || (!has(LISTS, name) && has(READS, &name_words(&tool.description)));
    (says_so && params.need_only(&fillable)).then_some(Read { tool: &tool.name, path, start, end, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
        let mut schema = json!({"type": "object", "required": required});
        schema["properties"] = properties;
        ToolSpec::new(name, description, schema)
    }

    #[test]
    fn tools_are_known_by_what_they_take_and_not_by_one_name() {
        for (search, find, read) in [
            (
                tool(
                    "search_files",
                    "Searches by regular expression.",
                    json!({"pattern": {}, "glob": {}}),
                    &["pattern"],
                ),
                tool("find_files", "Finds files.", json!({"glob": {}}), &["glob"]),
                tool("read_file", "Reads.", json!({"path": {}, "start_line": {}, "end_line": {}}), &["path"]),
            ),
            (
                tool(
                    "Grep",
                    "A search tool. Supports full regex syntax.",
                    json!({"pattern": {}, "path": {}}),
                    &["pattern"],
                ),
                tool("Glob", "Matches files by glob patterns.", json!({"pattern": {}}), &["pattern"]),
                tool("Read", "Reads a file.", json!({"filePath": {}, "offset": {}, "limit": {}}), &["filePath"]),
            ),
        ] {
            let tools = [search, find, read];
            let roles = Roles::of(&tools);
            assert_eq!(roles.search.as_ref().map(|s| (s.tool, s.regex)), Some((tools[0].name.as_str(), true)));
            assert_eq!(roles.find.as_ref().map(|f| f.tool), Some(tools[1].name.as_str()));
            assert_eq!(roles.read.as_ref().map(|r| r.tool), Some(tools[2].name.as_str()));
        }
    }

    #[test]
    fn a_range_of_lines_is_asked_for_in_the_tools_own_terms() {
        let by_end = [tool("read_file", "", json!({"path": {}, "start_line": {}, "end_line": {}}), &["path"])];
        let by_count = [tool("Read", "", json!({"file_path": {}, "offset": {}, "limit": {}}), &["file_path"])];
        let args = |tools| Roles::of(tools).read.map(|read| read.call("a.rs", 11, 20).args);
        assert_eq!(args(&by_end), Some(json!({"path": "a.rs", "start_line": 11, "end_line": 20})));
        assert_eq!(args(&by_count), Some(json!({"file_path": "a.rs", "offset": 11, "limit": 10})));
    }

    #[test]
    fn tools_that_change_things_or_need_more_are_never_used() {
        let tools = [
            tool("write_file", "Writes a file, then reads it.", json!({"path": {}, "content": {}}), &["path"]),
            tool("edit_file", "Reads and edits.", json!({"path": {}}), &["path"]),
            tool("search_and_mark", "Search.", json!({"pattern": {}, "mark": {}}), &["pattern", "mark"]),
            tool("weather", "The weather of a city.", json!({"city": {}}), &["city"]),
            tool("run_query", "Runs a query.", json!({"query": {}}), &["query"]),
        ];
        assert!(Roles::of(&tools).is_empty(), "{:?}", Roles::of(&tools));
    }
}
