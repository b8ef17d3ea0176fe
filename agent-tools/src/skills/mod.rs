//! [`Skills`]: instructions that a model loads on demand.

mod front_matter;
mod tools;
mod violations;

use std::{
    collections::BTreeMap,
    fmt, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use agent_core::{Error, Result};

use self::front_matter::Optional;
use crate::{
    ToolSet,
    files::{
        Files, shown,
        walk::{Stop, walk},
    },
    workspace::text::is_binary,
};

/// File that makes a directory a skill.
const SKILL: &str = "SKILL.md";

/// Maximum of listed files per skill, and of the time to find them.
const MOST_NAMED: usize = 50;
const LONGEST: Duration = Duration::from_secs(1);

/// Instructions that a model loads on demand, as tools: `load_skill`, whose description lists the
/// skills, and `read_skill_file`, if a skill has further files.
///
/// A skill is a directory with a file `SKILL.md`, which begins with front matter: its
/// `description`, and its `name` if that differs from the directory's; optionally its `license`,
/// `compatibility`, `metadata` and `allowed-tools`. The rest of the file is the
/// instructions. They and the other files, all of them text, are read when the model requests them,
/// so that they cost nothing until then. A skill can also be [made in code](Skill).
///
/// No path leads out of a skill's directory: neither `..`, nor an absolute path, nor a symbolic
/// link. The error for an unreadable file lists the readable ones. A `LongToolOutput` around the
/// tools should exempt `load_skill`.
///
/// ```
/// use agent_tools::{Skill, Skills};
///
/// let skills = Skills::new()
///     .skill(Skill::new("greeting", "How guests are greeted.", "Say hello in the guest's own language."))?;
/// let tools = skills.tools();
/// assert_eq!(tools.names(), ["load_skill"]);
/// # use agent_core::Tool;
/// # let tool = tools.into_tools()?.remove(0);
/// # assert!(tool.spec().description.ends_with("- greeting: How guests are greeted."));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Skills(Arc<BTreeMap<String, Skill>>);

/// Skill.
#[derive(Clone)]
pub struct Skill {
    name: String,
    description: String,
    optional: Optional,
    source: Source,
    /// Resource that must live as long as the skill.
    #[cfg(feature = "plugins")]
    keeps: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

#[derive(Clone)]
enum Source {
    Text(Arc<str>),
    Directory(Files),
}

impl Skill {
    /// Creates a skill with these instructions. The description says when the skill is useful:
    /// initially the model sees nothing else.
    pub fn new(name: impl Into<String>, description: impl Into<String>, instructions: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            optional: Optional::default(),
            source: Source::Text(instructions.into()),
            #[cfg(feature = "plugins")]
            keeps: None,
        }
    }

    /// Opens the skill in a directory.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `SKILL.md` is missing or has no
    /// description.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let files = Files::open_root(directory, "skill")?;
        let refused = |why: &str| Error::config(format!("skill '{}': {why}", directory.display()));
        let text = read_text(&files, Path::new(SKILL)).map_err(|e| refused(e.message()))?;
        let (fields, _) = front_matter::split(&text).map_err(|why| refused(&format!("{SKILL}: {why}")))?;
        let given = |field: Option<String>| field.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let own = directory.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let name = given(fields.name).or(own).ok_or_else(|| refused("its front matter has no name"))?;
        let description = given(fields.description).ok_or_else(|| {
            refused(&format!("the front matter of {SKILL} has no description: say when it is of use"))
        })?;
        Ok(Self {
            name,
            description,
            optional: fields.optional,
            source: Source::Directory(files),
            #[cfg(feature = "plugins")]
            keeps: None,
        })
    }

    /// Keeps a resource alive as long as the skill.
    #[cfg(feature = "plugins")]
    pub(crate) fn keep(mut self, what: impl std::any::Any + Send + Sync) -> Self {
        self.keeps = Some(Arc::new(what));
        self
    }

    /// Returns the name by which the model loads the skill.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description of the skill's use.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the licence: its name, or that of a file of the skill.
    pub fn license(&self) -> Option<&str> {
        self.optional.license.as_deref()
    }

    /// Returns the requirements on the environment: programs, packages, network. The model sees
    /// them with the instructions.
    pub fn compatibility(&self) -> Option<&str> {
        self.optional.compatibility.as_deref()
    }

    /// Returns the further metadata, such as the author and the version.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.optional.metadata
    }

    /// Returns the patterns of the tools that the skill's author would have run without approval,
    /// such as `Read` and `Bash(git:*)`. Nothing is approved by them: give those that you trust to
    /// an approval's `preapprove`.
    pub fn allowed_tools(&self) -> &[String] {
        &self.optional.allowed_tools
    }

    /// Returns the violations of the Agent Skills specification, for authors: such a skill works
    /// here, and other products may refuse it.
    pub fn violations(&self) -> Vec<String> {
        let mut found = violations::of_name(&self.name);
        if let Source::Directory(files) = &self.source {
            let folder = files.root_path().file_name().map(|name| name.to_string_lossy().into_owned());
            if let Some(folder) = folder.filter(|folder| *folder != self.name) {
                found.push(format!("the directory is named '{folder}', and the skill '{}'", self.name));
            }
        }
        found.extend(violations::of_length("description", &self.description, violations::DESCRIPTION));
        if let Some(compatibility) = self.compatibility() {
            found.extend(violations::of_length("compatibility", compatibility, violations::COMPATIBILITY));
        }
        let unknown = self.optional.unknown.iter();
        found.extend(unknown.map(|field| format!("unknown field '{field}': use a key of 'metadata'")));
        found
    }

    /// Returns the current instructions.
    fn instructions(&self) -> Result<String> {
        match &self.source {
            Source::Text(text) => Ok(text.to_string()),
            Source::Directory(files) => {
                let text = read_text(files, Path::new(SKILL))?;
                let (_, body) = front_matter::split(&text).map_err(|why| Error::tool(format!("{SKILL}: {why}")))?;
                Ok(body.to_owned())
            }
        }
    }

    /// Lists the further files, up to a maximum.
    fn files(&self) -> Vec<String> {
        let Source::Directory(files) = &self.source else { return Vec::new() };
        let stop = Stop { cx: None, at: Instant::now().checked_add(LONGEST) };
        let mut named = Vec::new();
        let walked = walk(files, Path::new(""), usize::MAX, &stop, &mut |found| {
            let path = shown(found.path);
            if found.entry.is_file() && path != SKILL {
                named.push(path);
            }
            Ok(if named.len() < MOST_NAMED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        if walked.is_err() {
            named.clear(); // a failed listing must not cause an error
        }
        named
    }

    /// Reads a further file; the error lists the existing ones.
    fn read(&self, path: &str) -> Result<String> {
        let read = match &self.source {
            Source::Text(_) => Err(Error::tool(format!("'{path}' does not exist"))),
            Source::Directory(files) => files.relative(path).and_then(|path| read_text(files, &path)),
        };
        read.map_err(|e| {
            let files = match self.files() {
                files if files.is_empty() => "none".to_owned(),
                files => files.join(", "),
            };
            Error::tool(format!("{}. Files of the skill '{}': {files}", e.message(), self.name))
        })
    }
}

fn read_text(files: &Files, path: &Path) -> Result<String> {
    let bytes = files.read(path)?;
    match String::from_utf8(bytes) {
        Ok(text) if !is_binary(text.as_bytes()) => Ok(text),
        _ => Err(Error::tool(format!("'{}' is not text", shown(path)))),
    }
}

impl Skills {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens all skills of a directory: each subdirectory with a `SKILL.md`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the directory cannot be read, if a
    /// skill is invalid, or if two have the same name.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let unreadable =
            |e: io::Error| Error::config(format!("cannot read the skills in '{}': {e}", directory.display()));
        let entries = std::fs::read_dir(directory).and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<io::Result<Vec<PathBuf>>>()
        });
        let mut paths = entries.map_err(unreadable)?;
        paths.retain(|path| path.join(SKILL).exists());
        paths.sort();
        paths.iter().try_fold(Self::new(), |skills, path| skills.skill(Skill::open(path)?))
    }

    /// Adds a skill.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the name is empty or already in use.
    pub fn skill(mut self, skill: Skill) -> Result<Self> {
        let name = skill.name.clone();
        if name.trim().is_empty() {
            return Err(Error::config("a skill needs a name"));
        }
        if Arc::make_mut(&mut self.0).insert(name.clone(), skill).is_some() {
            return Err(Error::config(format!("two skills are named '{name}': rename one")));
        }
        Ok(self)
    }

    /// Iterates over the skills, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.0.values()
    }

    /// Returns the tools; empty if there are no skills.
    pub fn tools(&self) -> ToolSet {
        let set = ToolSet::new("skills");
        if self.0.is_empty() {
            return set;
        }
        let set = set.tool(tools::load(self));
        if self.iter().all(|skill| skill.files().is_empty()) { set } else { set.tool(tools::read(self)) }
    }

    /// Returns the instructions of a skill, or the further file at `path`.
    #[cfg(feature = "mcp")]
    pub(crate) async fn text_of(self, name: String, path: Option<String>) -> Result<String> {
        crate::blocking::blocking(move || {
            let skill = self.find(&name)?;
            path.map_or_else(|| skill.instructions(), |path| skill.read(&path))
        })
        .await
    }

    fn find(&self, name: &str) -> Result<&Skill> {
        self.0.get(name.trim()).ok_or_else(|| {
            let known: Vec<_> = self.0.keys().map(String::as_str).collect();
            Error::tool(format!("there is no skill '{name}'; there are: {}", known.join(", ")))
        })
    }
}

impl fmt::Debug for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skill").field("name", &self.name).finish_non_exhaustive()
    }
}
