//! `permissions` of tools: the middleware `approval`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{difference::Differences, keys::Keys};

/// Argument that a pattern of NexAU is matched against.
#[derive(Clone, Copy)]
pub(super) enum Looks {
    /// A path, in this argument.
    Path(&'static str),
    /// A command line, in this argument.
    Command(&'static str),
    /// A host, in the address that this argument is.
    Host(&'static str),
    /// Nothing that a rule can look at.
    Nothing,
}

/// The rules of the agent. As soon as there is one, what none fits is asked about: a tool that NexAU allows has a rule that
/// says so.
#[derive(Default)]
pub(super) struct Rules {
    allowed: BTreeSet<String>,
    /// Tools that are never allowed as a whole: one tool here may replace several of NexAU.
    restricted: BTreeSet<String>,
    rules: Vec<Value>,
    asks: bool,
}

impl Rules {
    /// Lets tools run, by a pattern of their names.
    pub(super) fn allow(&mut self, tool: impl Into<String>) {
        self.allowed.insert(tool.into());
    }

    /// Translates the permissions of a tool; without any it runs.
    pub(super) fn of_tool(&mut self, tool: &str, entry: &mut Keys, looks: Looks, differences: &mut Differences) {
        let Some(mut said) = entry.object("permissions", differences) else { return self.allow(tool) };
        match said.peek("allow").and_then(Value::as_array).is_some_and(|allowed| allowed.contains(&json!("**"))) {
            true => self.allow(tool),
            false => self.restrict(tool),
        }
        self.asks = true;
        for policy in ["allow", "deny"] {
            for (path, pattern) in said.list(policy, differences) {
                match pattern.as_str() {
                    Some("**") if policy == "allow" => {}
                    Some("**") => self.whole(policy, tool),
                    Some(pattern) => self.pattern(tool, policy, pattern, looks, path, differences),
                    None => differences.impossible(path, "expects a text", "it is left out"),
                }
            }
        }
        said.refuse_rest(differences);
    }

    /// Adds a rule about the calls that a pattern fits.
    fn pattern(
        &mut self,
        tool: &str,
        policy: &str,
        pattern: &str,
        looks: Looks,
        path: String,
        differences: &mut Differences,
    ) {
        // One that begins with `!` takes back what those before it said.
        let (policy, pattern) = match (pattern.strip_prefix('!'), looks, policy) {
            (Some(pattern), Looks::Path(_), "allow") => ("ask", pattern),
            (Some(_), Looks::Path(_), _) => {
                let nexau = "takes such paths out of what is denied";
                return differences.otherwise(path, nexau, "a denial holds for all that it fits");
            }
            _ => (policy, pattern),
        };
        if let Some(when) = when(pattern, policy, looks) {
            return self.rules.push(json!({"policy": policy, "tool": tool, "when": when}));
        }
        let here = match policy {
            "deny" => {
                self.whole(policy, tool);
                "no rule can say so: no call of the tool runs"
            }
            _ => "no rule can say so: such calls are asked about",
        };
        let nexau = format!("holds '{pattern}' against what the tool makes of its arguments");
        differences.impossible(path, nexau, here);
    }

    /// Has calls of a tool asked about that no other rule lets run.
    pub(super) fn restrict(&mut self, tool: &str) {
        self.asks = true;
        self.restricted.insert(tool.to_owned());
    }

    /// Says that some tool, which has no rule, is asked about.
    pub(super) fn ask(&mut self) {
        self.asks = true;
    }

    /// Adds a rule about a tool as a whole.
    pub(super) fn whole(&mut self, policy: &str, tool: &str) {
        match policy {
            "allow" => self.allow(tool),
            _ => self.rules.push(json!({"policy": policy, "tool": tool})),
        }
    }

    /// The permissions, if anything is asked about.
    pub(super) fn finish(self) -> Option<Value> {
        let allowed = self.allowed.difference(&self.restricted);
        let allowed = allowed.map(|tool| json!({"policy": "allow", "tool": tool}));
        let rules: Vec<_> = allowed.chain(self.rules).collect();
        self.asks.then(|| json!({"default": "ask", "rules": rules}))
    }
}

/// Returns the rule for the arguments of a pattern; `None` if a rule would be less strict.
fn when(pattern: &str, policy: &str, looks: Looks) -> Option<Value> {
    Some(match looks {
        Looks::Path(argument) => json!({argument: {"path": below(pattern, policy)}}),
        Looks::Command(argument) => json!({argument: {"command": [pattern]}}),
        Looks::Host(argument) if policy == "deny" => json!({argument: {"text": [format!("*{pattern}*")]}}),
        // A star in a host would fit slashes too, and so other hosts.
        Looks::Host(argument) if !pattern.contains(['*', '?']) => {
            json!({argument: {"text": [format!("https://{pattern}"), format!("https://{pattern}/*")]}})
        }
        Looks::Host(_) | Looks::Nothing => return None,
    })
}

/// The paths that a pattern of gitignore's fits: one without a slash at any depth, one of a directory with all that is below it.
fn below(pattern: &str, policy: &str) -> Vec<String> {
    let pattern = pattern.trim_end_matches('/');
    let rooted = pattern.trim_start_matches("./").trim_start_matches('/');
    let mut all = match (pattern.contains('/'), policy) {
        (false, _) => vec![pattern.to_owned(), format!("**/{pattern}")],
        // A slash at its beginning is the root of the disk, or where the agent works: a denial holds for both.
        (true, "deny") if pattern.starts_with('/') => vec![pattern.to_owned(), rooted.to_owned()],
        (true, _) if pattern.starts_with('/') => vec![pattern.to_owned()],
        (true, _) => vec![rooted.to_owned()],
    };
    if !pattern.ends_with("**") {
        let inside: Vec<_> = all.iter().map(|pattern| format!("{pattern}/**")).collect();
        all.extend(inside);
    }
    all
}
