//! References in texts: `${env.NAME}`, `${file.PATH}`, `${variables.NAME}`.
//!
//! References are followed in values alone, after the file was read: what a comment says is nothing, and no value can become a key
//! or a second value.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    near,
    problem::Problem,
    sources::Sources,
    text::{Entry, Node, Tree},
};

/// Gives the value of an environment variable.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Values of references.
#[derive(Clone)]
pub(super) struct References {
    pub(super) environment: Environment,
    pub(super) variables: BTreeMap<String, String>,
    seen: Arc<Mutex<Seen>>,
}

/// Names of variables that files have.
#[derive(Debug, Default)]
struct Seen {
    declared: BTreeSet<String>,
    used: BTreeSet<String>,
}

/// A variable that was set, and that no file declares or refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusedVariable {
    /// Name that was set.
    pub name: String,
    /// The nearest name that a file declares.
    pub nearest: Option<String>,
}

impl Default for References {
    fn default() -> Self {
        Self {
            environment: Arc::new(|name| std::env::var(name).ok()),
            variables: BTreeMap::new(),
            seen: Arc::default(),
        }
    }
}

impl fmt::Debug for References {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("References").field("variables", &self.variables.keys()).finish_non_exhaustive()
    }
}

impl References {
    /// The same, with no variable seen yet.
    pub(super) fn untouched(&self) -> Self {
        Self { seen: Arc::default(), ..self.clone() }
    }

    /// Variables that were set, and that no file declares or refers to.
    pub(super) fn unused(&self) -> Vec<UnusedVariable> {
        let seen = self.seen();
        let declared: Vec<_> = seen.declared.iter().map(String::as_str).collect();
        let is_unused = |name: &&String| !seen.declared.contains(*name) && !seen.used.contains(*name);
        let unused = self.variables.keys().filter(is_unused);
        unused
            .map(|name| UnusedVariable {
                name: name.clone(),
                nearest: near::nearest(name, &declared).map(str::to_owned),
            })
            .collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows all references below the node. Files are relative to the file in which the reference stands.
    pub(super) fn follow(&self, node: &mut Node, sources: &mut Sources, problems: &mut Vec<Problem>) {
        match &mut node.tree {
            Tree::List(nodes) => nodes.iter_mut().for_each(|node| self.follow(node, sources, problems)),
            Tree::Map(entries) => entries.iter_mut().for_each(|entry| self.follow(&mut entry.node, sources, problems)),
            Tree::Text(text) if text.contains("${") => match self.filled(text, node.place.dir(), sources) {
                Ok((filled, referred)) => {
                    node.tree = Tree::Text(filled);
                    node.referred = referred;
                }
                Err(Lost { why, help }) => {
                    node.is_lost = true;
                    problems.push(Problem::new(node.place.clone(), why).help(help));
                }
            },
            _ => {}
        }
    }

    /// Adds the variables of an agent, each of which may refer to those above it. Known values take precedence.
    pub(super) fn with_variables(
        &self,
        variables: &mut Node,
        sources: &mut Sources,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut all = self.clone();
        self.add_variables("", variables.entries_mut(), &mut all, sources, problems);
        all
    }

    /// Adds the variables of a group, which are called `group.name`.
    fn add_variables(
        &self,
        group: &str,
        variables: &mut [Entry],
        all: &mut Self,
        sources: &mut Sources,
        problems: &mut Vec<Problem>,
    ) {
        for Entry { key, node, .. } in variables {
            let name = format!("{group}{key}");
            self.seen().declared.insert(name.clone());
            if let Some(told) = self.variables.get(&name) {
                node.refers_to(told.clone());
            } else if let Tree::Map(below) = &mut node.tree {
                self.add_variables(&format!("{name}."), below, all, sources, problems);
            } else {
                all.follow(node, sources, problems);
                all.variables.extend(node.scalar().map(|value| (name, value)));
            }
        }
    }

    /// Resolves the references of a text, and returns whether there were any. Inserted values are not resolved again.
    fn filled(&self, text: &str, dir: &Path, sources: &mut Sources) -> Result<(String, bool), Lost> {
        let (mut filled, mut rest, mut referred) = (String::new(), text, false);
        while let Some(at) = rest.find("${") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            if let Some(before) = before.strip_suffix('$') {
                filled.push_str(before);
                filled.push_str("${");
                rest = after;
                continue;
            }
            filled.push_str(before);
            let reference = after.split_once('}').and_then(|(inner, rest)| Some((inner.split_once('.')?, rest)));
            let Some(((space, name), after)) = reference.filter(|((space, _), _)| is_word(space)) else {
                // Braces of a shell, a template or JavaScript.
                filled.push_str("${");
                rest = after;
                continue;
            };
            let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
            let value = match (self.value(space, name, dir, sources), default) {
                (Err(Lost { why, .. }), Some(default)) if !why.starts_with(UNKNOWN) => default.to_owned(),
                // As in a shell, a variable that is set to nothing has the default, too.
                (Ok(value), Some(default)) if value.is_empty() && space == "env" => default.to_owned(),
                (value, _) => value?,
            };
            sources.add(value.len()).map_err(|why| Lost {
                why: format!("what '{space}.{name}' puts in {why}"),
                help: "refer to less".to_owned(),
            })?;
            filled.push_str(&value);
            referred = true;
            rest = after;
        }
        filled.push_str(rest);
        Ok((filled, referred))
    }

    fn value(&self, space: &str, name: &str, dir: &Path, sources: &mut Sources) -> Result<String, Lost> {
        match space {
            "env" => (self.environment)(name).ok_or_else(|| Lost {
                why: format!("the environment variable {name} is not set"),
                help: format!("set it, or give a default: ${{env.{name}:-default}}"),
            }),
            "variables" => {
                self.seen().used.insert(name.to_owned());
                self.variables.get(name).cloned().ok_or_else(|| self.no_variable(name))
            }
            "file" => match sources.text(&dir.join(name)) {
                // Without the line's end after it.
                Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(why) => Err(Lost {
                    why: format!("the file '{name}' {why}"),
                    help: format!("it is looked for in {}", shown(dir)),
                }),
            },
            _ => Err(Lost {
                why: format!("{UNKNOWN}'{space}'"),
                help: near::advice(space, &["env", "file", "variables"], "references")
                    .unwrap_or_else(|| "write $${ for the characters themselves".to_owned()),
            }),
        }
    }
}

impl References {
    /// The error of a reference to a variable that there is not.
    fn no_variable(&self, name: &str) -> Lost {
        let known: Vec<_> = self.variables.keys().map(String::as_str).collect();
        Lost {
            why: format!("there is no variable '{name}'"),
            help: near::advice(name, &known, "variables")
                .unwrap_or_else(|| "write it below the key 'variables'".to_owned()),
        }
    }
}

/// The folder, which is the current one if it has no name.
fn shown(dir: &Path) -> std::path::Display<'_> {
    if dir.as_os_str().is_empty() { Path::new(".").display() } else { dir.display() }
}

const UNKNOWN: &str = "nothing can be referred to by ";

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A reference that leads nowhere.
struct Lost {
    why: String,
    help: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references() -> References {
        let environment = |name: &str| match name {
            "KEY" => Some("sk-1".to_owned()),
            "LOOP" => Some("${env.KEY}".to_owned()),
            _ => None,
        };
        References {
            environment: Arc::new(environment),
            variables: BTreeMap::from([("city".to_owned(), "Bern".to_owned())]),
            seen: Arc::default(),
        }
    }

    fn filled(text: &str) -> Result<String, String> {
        references()
            .filled(text, Path::new("/nowhere"), &mut Sources::default())
            .map(|(text, _)| text)
            .map_err(|lost| lost.why)
    }

    #[test]
    fn references_are_followed_once_and_all_else_stays_as_it_is() {
        for (text, expected) in [
            ("${env.KEY}", "sk-1"),
            ("Bearer ${env.KEY}, ${variables.city}", "Bearer sk-1, Bern"),
            ("${env.NONE:-a:b}", "a:b"),
            ("${env.NONE:-}", ""),
            ("${env.LOOP}", "${env.KEY}"),
            ("$${env.KEY}", "${env.KEY}"),
            ("echo ${HOME} $KEY ${1}", "echo ${HOME} $KEY ${1}"),
            ("${", "${"),
            ("${env.KEY", "${env.KEY"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_named() {
        for (text, why) in [
            ("${env.NONE}", "the environment variable NONE is not set"),
            ("${variables.town}", "there is no variable 'town'"),
            ("${evn.KEY:-x}", "nothing can be referred to by 'evn'"),
            ("${file.none.txt}", "the file 'none.txt' cannot be read"),
        ] {
            let error = filled(text).expect_err(text);
            assert!(error.starts_with(why), "{error}");
        }
    }
}
