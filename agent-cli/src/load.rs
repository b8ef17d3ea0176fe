//! The agent that the options mean.

use std::{path::Path, sync::Arc};

use agent::{
    Agent, AgentBuilder, Effect, Error, Model, Result, Tool,
    config::{self, DifferenceKind, LoadedTeam, Loader, Locator, StoreAddress, UnusedVariable, Watched},
    core::Journal,
    llm::{self, Providers, offline::OfflineModel},
    middleware::{Approval, Permissions},
    tools::{Shell, Workspace, sandbox::LocalSandbox},
};

use crate::{
    agents_md::ProjectInstructions,
    cli::Global,
    output::{Paint, plain},
    store, team, telemetry,
};

/// Lets models be named of the providers in the file that the options name.
///
/// # Errors
/// If it cannot be read, or what it says does not hang together.
pub(crate) fn providers(global: &Global) -> Result<()> {
    if let Some(file) = &global.providers {
        Providers::builtin().with_file(file)?.install();
    }
    Ok(())
}

/// The agent that the options mean, and where its sessions are.
pub(crate) struct Loaded {
    pub(crate) builder: AgentBuilder,
    pub(crate) journal: Arc<dyn Journal>,
    /// The agent's description.
    pub(crate) description: Option<String>,
    /// Permissions of tool calls in its file.
    pub(crate) permissions: Option<Permissions>,
    locator: Option<Locator>,
}

/// The same without a store, and the store that its file names.
pub(crate) struct Assembled {
    pub(crate) builder: AgentBuilder,
    pub(crate) description: Option<String>,
    pub(crate) store: Option<StoreAddress>,
    pub(crate) permissions: Option<Permissions>,
    /// The files that say it, if any do.
    pub(crate) files: Option<Watched>,
    /// Source locations of errors that are found when the agent is built.
    pub(crate) locator: Option<Locator>,
    /// Variables of `--set` that its files do not have.
    unused_variables: Vec<UnusedVariable>,
}

impl Assembled {
    /// Builds the agent.
    ///
    /// # Errors
    /// If its parts do not go together, with the place in its file.
    pub(crate) fn build(&self) -> Result<Agent> {
        built(&self.builder, self.locator.as_ref())
    }
}

fn built(builder: &AgentBuilder, locator: Option<&Locator>) -> Result<Agent> {
    builder.clone().build().map_err(|error| match locator {
        Some(locator) => locator.located(error),
        None => error,
    })
}

impl Loaded {
    /// The agent.
    ///
    /// # Errors
    /// If its parts do not go together.
    pub(crate) fn build(&self) -> Result<Agent> {
        built(&self.builder, self.locator.as_ref())
    }
}

/// Builds what the options mean, with the store open.
///
/// # Errors
/// What cannot be, with what to do.
pub(crate) async fn load(global: &Global) -> Result<Loaded> {
    let Assembled { builder, description, store, permissions, locator, .. } = assemble(global)?;
    let journal = store::address(global, store.as_ref())?.open().await?;
    Ok(Loaded { builder: builder.store(journal.clone()), journal, description, permissions, locator })
}

/// Builds what the options mean, without a store.
///
/// # Errors
/// What cannot be, with what to do.
pub(crate) fn assemble(global: &Global) -> Result<Assembled> {
    let assembled = assemble_any(global)?;
    let file = global.file.as_ref().map(|file| format!(" in {}", file.display())).unwrap_or_default();
    match assembled.unused_variables.first() {
        Some(unused) => Err(no_variable(unused, &file)),
        None => Ok(assembled),
    }
}

/// The error of a variable that no file has.
pub(crate) fn no_variable(unused: &UnusedVariable, file: &str) -> Error {
    let near = unused.nearest.as_ref().map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    Error::config(format!("--set: there is no variable '{}'{file}{near}", unused.name))
}

/// As [`assemble`], where another file may have the variables of `--set`.
fn assemble_any(global: &Global) -> Result<Assembled> {
    let Some(file) = &global.file else {
        let builder = with_options(Agent::builder("agent", model(global.model.as_deref())?), global)?;
        let unused_variables = Vec::new();
        if let Some((name, _)) = global.set.first() {
            return Err(Error::config(format!("--set {name}: without an agent's file there are no variables")));
        }
        let (description, store, permissions, files, locator) = (None, None, None, None, None);
        return Ok(Assembled { builder, description, store, permissions, files, locator, unused_variables });
    };
    let (loaded, files) = of_file(file, global)?;
    if let Some(exporter) = loaded.exporter() {
        telemetry::send(exporter.clone())?;
    }
    Ok(Assembled { files: Some(files), ..assembled(loaded, global)? })
}

/// Returns the agent of a file, with the options of the command line.
///
/// # Errors
/// A directory that cannot be the agent's.
pub(crate) fn assembled(loaded: config::Loaded, global: &Global) -> Result<Assembled> {
    let description = Some(loaded.description().to_owned()).filter(|about| !about.is_empty());
    let (store, permissions) = (loaded.store().cloned(), loaded.permissions().cloned());
    let (locator, unused_variables) = (Some(loaded.locator().clone()), loaded.unused_variables().to_vec());
    let builder = with_options(loaded.into_builder(), global)?;
    Ok(Assembled { builder, description, store, permissions, files: None, locator, unused_variables })
}

/// The builder with what the options say in the place of a file, or beside it.
pub(crate) fn with_options(mut builder: AgentBuilder, global: &Global) -> Result<AgentBuilder> {
    if let Some(name) = &global.name {
        builder = builder.name(name);
    }
    if let Some(system) = &global.system {
        builder = builder.system(system);
    }
    if global.agents_md {
        builder = builder.middleware(ProjectInstructions::of(global.dir.as_deref().unwrap_or(Path::new(".")))?);
    }
    let tools = tools(global)?;
    if !tools.is_empty() {
        let approval = approval(&tools, global);
        builder = builder.tools(tools).middleware(approval);
    }
    Ok(builder.streaming(true))
}

/// Model of commands that ask none.
pub(crate) const NO_MODEL: &str = "offline:any";

/// True if a word of the command line is meant as an agent's file.
pub(crate) fn is_agent_file(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("yaml" | "yml" | "toml" | "json")) && !word.contains(char::is_whitespace)
}

/// Returns the loader with the options of the command line.
pub(crate) fn loader(global: &Global) -> Loader {
    let loader = global.model.iter().fold(Loader::new(), Loader::every_model);
    let loader = global.set.iter().fold(loader, |loader, (name, value)| loader.variable(name, value));
    let loader = global.allow_tool.iter().fold(loader, Loader::preapprove);
    if global.lenient { loader.lenient() } else { loader }
}

/// Builds the agents of several files, or the one that the options mean, reads the teams among the files, and says where their sessions are: in one
/// place. The agents' builders have no store yet.
///
/// # Errors
/// As [`assemble`], and if the files name different stores.
#[cfg(feature = "serve")]
pub(crate) fn assemble_all(
    files: &[std::path::PathBuf],
    global: &Global,
) -> Result<(Vec<Assembled>, Vec<LoadedTeam>, StoreAddress)> {
    let files: Vec<_> = match files {
        [] => vec![global.file.clone()],
        files => files.iter().cloned().map(Some).collect(),
    };
    let (mut agents, mut teams, mut stores) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        if let Some(team) = team::team_of(&Global { file: file.clone(), ..global.clone() })? {
            stores.extend(team.store().cloned().filter(|store| !stores.contains(store)));
            teams.push(team);
            continue;
        }
        let agent = assemble_any(&Global { file, ..global.clone() })?;
        stores.extend(agent.store.clone().filter(|store| !stores.contains(store)));
        agents.push(agent);
    }
    let is_unused = |unused: &&UnusedVariable| {
        agents.iter().all(|agent: &Assembled| agent.unused_variables.iter().any(|other| other.name == unused.name))
    };
    if teams.is_empty()
        && let Some(unused) = agents.iter().flat_map(|agent| &agent.unused_variables).find(is_unused)
    {
        return Err(no_variable(unused, ""));
    }
    if stores.len() > 1 && global.store.is_none() {
        let stores = stores.iter().map(ToString::to_string).collect::<Vec<_>>().join("', '");
        return Err(Error::config(format!("the files name different stores ('{stores}'): say which with --store")));
    }
    Ok((agents, teams, store::address(global, stores.first())?))
}

/// Loads a file with the options of the command line, and returns the files that it consists of.
///
/// # Errors
/// As [`Watched::open`].
pub(crate) fn of_file(file: &Path, global: &Global) -> Result<(config::Loaded, Watched)> {
    let (loaded, files) = Watched::open(loader(global), file)?;
    let tell = |text: &str| eprintln!("{}", Paint::stderr().dim(&plain(text)));
    let differences = loaded.differences();
    let is_lost = |difference: &&config::Difference| difference.kind == DifferenceKind::Impossible;
    for difference in differences.iter().filter(is_lost) {
        tell(&format!("agent: {difference}"));
    }
    if !differences.is_empty() {
        let (count, file) = (differences.len(), file.display());
        tell(&format!("agent: {count} differences from NexAU; list them with: agent doctor {file}"));
    }
    if is_stand_in(&loaded.definition().model.name) && global.model.as_deref() != Some(NO_MODEL) {
        tell("agent: the offline stand-in answers, which only finds and quotes; --model names another");
    }
    Ok((loaded, files))
}

/// True for the name of the offline model that only finds and quotes.
pub(crate) fn is_stand_in(model: &str) -> bool {
    model.starts_with("offline:") && model != "offline:script"
}

/// Returns the model of this name, or without one the offline model, with a note to the user.
///
/// # Errors
/// If there is no such provider, or what it needs is not set.
pub(crate) fn model(name: Option<&str>) -> Result<Arc<dyn Model>> {
    if let Some(name) = name {
        return Ok(Arc::new(llm::model(name).build()?));
    }
    let keys = keys();
    let advice = if keys.is_empty() {
        "no key of a provider is set (`agent doctor`)".to_owned()
    } else {
        format!("keys are set for {}: say --model {}:NAME", keys.join(", "), keys[0])
    };
    let note = format!("agent: no --model, so the offline stand-in answers, which only finds and quotes; {advice}");
    eprintln!("{}", Paint::stderr().dim(&plain(&note)));
    Ok(Arc::new(OfflineModel))
}

/// The providers whose keys are set.
fn keys() -> Vec<String> {
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let has_key = |provider: &&llm::Provider| provider.keys.iter().any(|key| is_set(&key.variable));
    Providers::of_process().iter().filter(has_key).map(|provider| provider.name.clone()).collect()
}

fn tools(global: &Global) -> Result<Vec<Arc<dyn Tool>>> {
    let Some(dir) = &global.dir else { return Ok(Vec::new()) };
    let mut tools: Vec<_> = Workspace::open(dir)?.tools().into_iter().collect();
    if global.shell {
        tools.extend(Shell::over(LocalSandbox::builder(dir).build()?).tools()?);
    }
    Ok(tools)
}

/// Asks about the tools that `--dir` and `--shell` add, but for those that only read and those that `--allow-tool` approves.
fn approval(tools: &[Arc<dyn Tool>], global: &Global) -> Approval {
    let changes = tools.iter().filter(|tool| tool.options().effect != Effect::Pure);
    let approval = changes.fold(Approval::new(), |approval, tool| approval.ask(tool.spec().name));
    global.allow_tool.iter().fold(approval, Approval::preapprove)
}
