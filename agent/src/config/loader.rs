//! From files to agents.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use agent_core::{GlobalStorage, Result};
use agent_exec::{AgentDefinition, DefinitionProblem, ModelDefinition, PartKind, UnknownPart};
use serde::Deserialize;
use serde_json::Value;

#[cfg(feature = "team")]
use super::team::{LoadedFile, Read};
use super::{
    file::{FileKeys, ModelConfig},
    include::{Pair, Reader},
    loaded::Loaded,
    locate::Locator,
    near,
    network::Network,
    nexau::Difference,
    parts::model::{Models, RELAY},
    problem::{Problem, Problems},
    references::References,
    registry::Registry,
    schema,
    settle::{self, Settled},
    store::StoreAddress,
    text::{Format, Node, Source, Tree},
};

const STORE: &str = "store";
/// Help for an unknown model.
const MODEL_NAMES: &str = "a model is PROVIDER:MODEL, such as openai:gpt-5 or offline:guide, or a name under 'models'";

/// Reads agents from files.
///
/// ```no_run
/// use agent::config::Loader;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agent::Result<()> {
/// let agent = Loader::new().variable("city", "Bern").load("agents/clerk.yaml")?.into_agent().await?;
/// agent.run("Where are you?").await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Loader {
    registry: Registry,
    references: References,
    lenient: bool,
    model: Option<String>,
    requires_servers: bool,
    preapproved: Vec<String>,
    schemas: Arc<OnceLock<Schemas>>,
}

/// Schema that files are checked against, and the schema for editors.
#[derive(Debug)]
pub(super) struct Schemas {
    pub(super) checked: Value,
    published: Value,
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

impl Loader {
    /// Knows the built-in parts, and this process's environment.
    pub fn new() -> Self {
        Self {
            registry: Registry::builtin(),
            references: References::default(),
            lenient: false,
            model: None,
            requires_servers: false,
            preapproved: Vec::new(),
            schemas: Arc::default(),
        }
    }

    /// Sets the parts that files may name.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self.schemas = Arc::default();
        self
    }

    /// Sets what `${variables.NAME}` stands for, whatever a file says of it.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.references.variables.insert(name.into(), value.into());
        self
    }

    /// Sets where `${env.NAME}` is looked up. Default: the environment of this process.
    pub fn environment(mut self, find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.references.environment = Arc::new(find);
        self
    }

    /// Sets the model of the agent and of all its sub-agents, by its name, in the place of what files say.
    pub fn every_model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Lets calls of these tools (`*` for any characters) run where the middleware `approval` of a file asks about them, in
    /// sub-agents too. A denial still holds. See [`Approval::preapprove`](agent_middleware::Approval::preapprove).
    pub fn preapprove(mut self, tools: impl Into<String>) -> Self {
        self.preapproved.push(tools.into());
        self
    }

    /// Has runs fail if a server of tools cannot be reached, whatever files say of it.
    pub fn require_servers(mut self) -> Self {
        self.requires_servers = true;
        self
    }

    /// Leaves out of a file of NexAU what cannot be had here, in the place of refusing it; [`Loaded::differences`] has what it was.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Reads an agent from a file.
    ///
    /// # Errors
    /// All that is wrong with the file, and with those that it is made of.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Loaded, Problems> {
        let references = self.references.untouched();
        let mut reader = Reader::new(&references, &self.registry, self.lenient);
        let pair = reader.file(path.as_ref(), None);
        let loaded = self.loaded(pair, reader)?;
        Ok(Loaded { unused_variables: references.unused(), ..loaded })
    }

    /// Reads an agent from a text. Paths in it are relative to the current folder; problems name it `agent`.
    ///
    /// # Errors
    /// All that is wrong with it, and with the files that it refers to.
    pub fn read(&self, text: impl Into<String>, format: Format) -> Result<Loaded, Problems> {
        let source = Arc::new(Source { name: "agent".to_owned(), text: text.into() });
        let references = self.references.untouched();
        let mut reader = Reader::new(&references, &self.registry, self.lenient);
        let pair = reader.text(&source, format);
        let loaded = self.loaded(pair, reader)?;
        Ok(Loaded { unused_variables: references.unused(), ..loaded })
    }

    /// Reads an agent or a team from a file.
    ///
    /// # Errors
    /// All that is wrong with the file, and with those that it is made of.
    #[cfg(feature = "team")]
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<LoadedFile, Problems> {
        let references = self.references.untouched();
        let mut reader = Reader::new(&references, &self.registry, self.lenient);
        let read = reader.either(path.as_ref());
        self.either(read, reader, &references)
    }

    /// Reads an agent or a team from a text, as [`read`](Self::read) does.
    ///
    /// # Errors
    /// All that is wrong with it, and with the files that it refers to.
    #[cfg(feature = "team")]
    pub fn read_file(&self, text: impl Into<String>, format: Format) -> Result<LoadedFile, Problems> {
        let source = Arc::new(Source { name: "agent".to_owned(), text: text.into() });
        let references = self.references.untouched();
        let mut reader = Reader::new(&references, &self.registry, self.lenient);
        let read = match reader.parsed(&source, format) {
            Ok(node) => reader.either_of(node),
            Err(problem) => Read::Agent(Err(problem)),
        };
        self.either(read, reader, &references)
    }

    #[cfg(feature = "team")]
    fn either(&self, read: Read, reader: Reader<'_>, references: &References) -> Result<LoadedFile, Problems> {
        Ok(match read {
            Read::Agent(pair) => {
                let loaded = self.loaded(pair, reader)?;
                LoadedFile::Agent(Box::new(Loaded { unused_variables: references.unused(), ..loaded }))
            }
            Read::Team(pair) => {
                let mut team = self.team(pair, reader)?;
                team.unused_variables = references.unused();
                LoadedFile::Team(Box::new(team))
            }
        })
    }

    /// True if the file, or one that it extends, describes a team. A file that cannot be read does not.
    #[cfg(feature = "team")]
    pub fn is_team(&self, path: impl AsRef<Path>) -> bool {
        let mut reader = Reader::new(&self.references, &self.registry, true);
        reader.key(path.as_ref(), super::team::TEAM).is_ok_and(|team| team.is_some())
    }

    /// The store that a file names, whatever else it says: neither its models nor their keys are needed.
    ///
    /// # Errors
    /// An invalid store, and files that cannot be read.
    pub fn store(&self, path: impl AsRef<Path>) -> Result<Option<StoreAddress>, Problems> {
        let mut reader = Reader::new(&self.references, &self.registry, true);
        let store = reader.key(path.as_ref(), STORE);
        let mut problems = reader.problems;
        let store = match store {
            Ok(None) => return Ok(None),
            Ok(Some(mut store)) => {
                let root = &self.schemas().checked;
                schema::check(&mut store, &root["properties"][STORE], root, &mut problems);
                StoreAddress::deserialize(store.to_json()).map_err(|e| Problem::new(store.place, e.to_string()))
            }
            Err(problem) => Err(problem),
        };
        match store {
            Ok(store) if problems.is_empty() => return Ok(Some(store)),
            Err(problem) if problems.is_empty() => problems.push(problem),
            _ => {}
        }
        Err(Problems::new(problems))
    }

    /// The JSON Schema of files, for editors.
    pub fn schema(&self) -> &Value {
        &self.schemas().published
    }

    pub(super) fn schemas(&self) -> &Schemas {
        self.schemas.get_or_init(|| {
            let checked = schema::whole(&self.registry);
            Schemas { published: schema::published(&checked), checked }
        })
    }

    fn loaded(&self, pair: Result<Pair, Problem>, reader: Reader<'_>) -> Result<Loaded, Problems> {
        let Reader { mut problems, sources, differences, .. } = reader;
        let files = sources.into_files();
        let mut pair = match pair {
            Ok(pair) => pair,
            Err(problem) => {
                problems.push(problem);
                return Err(Problems::new(problems).among(files));
            }
        };
        #[cfg(feature = "team")]
        if let Some(problem) = super::team::not_an_agent(&pair.live) {
            return Err(Problems::from(problem).among(files));
        }
        let written = self.checked(&mut pair, &mut problems);
        if !problems.is_empty() {
            return Err(Problems::new(problems).among(files));
        }
        let loaded = self.agent(pair, differences).map_err(|problems| problems.among(files.clone()))?;
        Ok(Loaded { written, files, ..loaded })
    }

    /// Checks an agent, and adds the parts that follow from its keys. Returns the unchanged agent.
    pub(super) fn checked(&self, pair: &mut Pair, problems: &mut Vec<Problem>) -> Value {
        let root = &self.schemas().checked;
        schema::check(&mut pair.live, root, root, problems);
        pair.written.take("extends");
        let written = pair.written.to_json();
        if problems.is_empty() {
            let settled = Settled { registry: &self.registry, requires_servers: self.requires_servers };
            settled.agent(&mut pair.written, &mut pair.live, problems);
        }
        written
    }

    pub(super) fn agent(&self, mut pair: Pair, differences: Vec<Difference>) -> Result<Loaded, Problems> {
        let place = pair.live.place.clone();
        let permissions = settle::permissions_of(&pair.live);
        let keys = |keys: &mut Node| {
            let taken = FileKeys::ALL.iter().filter_map(|key| Some(((*key).to_owned(), keys.take(key)?)));
            taken.collect::<BTreeMap<_, _>>()
        };
        keys(&mut pair.written);
        let own = keys(&mut pair.live);
        pair.without_keys_of_sub_agents();
        let problem_at = |node: &Node, why: String| Problems::from(Problem::new(node.place.clone(), why));
        let read: serde_json::Map<_, _> = own.iter().map(|(key, node)| (key.clone(), node.to_json())).collect();
        let read: FileKeys =
            serde_json::from_value(Value::Object(read)).map_err(|e| problem_at(&pair.live, e.to_string()))?;
        let at = |key: &str| own.get(key).unwrap_or(&pair.live);

        let network = Network::default()
            .with_providers(read.providers)
            .map_err(|e| problem_at(at("providers"), e.message().to_owned()))?
            .with_transport(read.transport)
            .map_err(|e| problem_at(at("transport"), e.message().to_owned()))?;
        let aliases: Vec<String> = read.models.keys().cloned().collect();
        let addresses: BTreeMap<_, _> = read
            .models
            .iter()
            .map(|(alias, model)| (alias.clone(), (model.name.clone(), model.base_url.clone())))
            .collect();
        let models = Arc::new(Models::new(read.models, self.registry.parts.clone(), network));
        let (by_name, by_config) = (models.clone(), models);
        let parts = self.registry.parts.clone().models(move |name: &str| Some(by_name.make(name)));
        let parts = parts.models_with(move |config: ModelConfig| by_config.of(&config));
        let parts = match self.preapproved.is_empty() {
            true => parts,
            false => super::parts::middleware::preapprove(parts, self.preapproved.clone()),
        };

        let mut definition = definition(&pair).map_err(|e| Problem::new(place, e))?;
        if let Some(name) = &self.model {
            set_models(&mut definition, name);
        }
        let mut builder = parts.builder(&definition).map_err(|error| {
            let problems = DefinitionProblem::of(&error).iter();
            let problems = problems.map(|problem| {
                let place = pair.live.nearest(&problem.pointer).place.clone();
                match UnknownPart::of(&problem.error) {
                    Some(UnknownPart { kind: PartKind::Model, name, .. }) => {
                        Problem::new(place, format!("unknown model '{name}'")).help(models_help(name, &aliases))
                    }
                    _ => Problem::new(place, problem.error.message()),
                }
            });
            Problems::new(problems.collect())
        })?;
        let budget = read.budget.budget().map_err(|e| problem_at(at("budget"), e.message().to_owned()))?;
        if let Some(budget) = budget {
            builder = builder.budget(budget);
        }
        if !read.globals.is_empty() {
            builder = builder.globals(GlobalStorage::restore(read.globals));
        }
        let mut model_addresses = Vec::new();
        match &self.model {
            Some(name) => model_addresses.push((name.clone(), None)),
            None => gather_addresses(&pair.live, &addresses, &mut model_addresses),
        }
        let locator = Locator::new(pair.live);
        let exporter = read.telemetry.map(|telemetry| telemetry.exporter(&definition.name));
        Ok(Loaded {
            definition,
            exporter,
            description: read.description.unwrap_or_default(),
            store: read.store,
            permissions,
            parts,
            written: Value::Null,
            files: Vec::new(),
            differences,
            builder,
            locator,
            model_addresses,
            unused_variables: Vec::new(),
        })
    }
}

/// Adds the models of an agent and of those below it, with the addresses that the file sets.
fn gather_addresses(
    agent: &Node,
    aliases: &BTreeMap<String, (String, Option<String>)>,
    all: &mut Vec<(String, Option<String>)>,
) {
    if let Some(model) = agent.get("model") {
        let name = model.text().or_else(|| model.get("name")?.text()).unwrap_or_default();
        let url = model.get("base_url").and_then(Node::text).map(str::to_owned);
        let (name, of_alias) = aliases.get(name).cloned().unwrap_or_else(|| (name.to_owned(), None));
        if !name.starts_with(RELAY) {
            all.push((name, url.or(of_alias)));
        }
    }
    for entry in agent.get("sub_agents").map(Node::entries).unwrap_or_default() {
        entry.node.get("agent").iter().for_each(|below| gather_addresses(below, aliases, all));
    }
}

/// The model that was meant, or the names that models have.
fn models_help(name: &str, aliases: &[String]) -> String {
    let known: Vec<_> = aliases.iter().map(String::as_str).collect();
    match near::advice(name, &known, "models") {
        Some(advice) => format!("{advice}; or PROVIDER:MODEL"),
        None => MODEL_NAMES.to_owned(),
    }
}

fn set_models(definition: &mut AgentDefinition, name: &str) {
    // An agent elsewhere has its own.
    if !definition.model.name.starts_with(RELAY) {
        definition.model = ModelDefinition::new(name);
    }
    definition.sub_agents.values_mut().for_each(|below| set_models(&mut below.agent, name));
}

/// Returns the definition as written, with the resolved configuration of its parts.
fn definition(pair: &Pair) -> Result<AgentDefinition, String> {
    let mut live = AgentDefinition::deserialize(pair.live.to_json()).map_err(|e| e.to_string())?;
    keep_written(&mut live, &pair.written)?;
    Ok(live)
}

fn keep_written(definition: &mut AgentDefinition, written: &Node) -> Result<(), String> {
    for (key, parts) in [
        ("tools", &mut definition.tools),
        ("toolsets", &mut definition.toolsets),
        ("middleware", &mut definition.middleware),
    ] {
        let Some(Tree::List(nodes)) = written.get(key).map(|node| &node.tree) else { continue };
        for (part, node) in parts.iter_mut().zip(nodes) {
            let live = std::mem::take(&mut part.config);
            let config = node.get(&part.name).map(Node::to_json).unwrap_or_default();
            *part = part.clone().config(config).live(live);
        }
    }
    if let Some(node) = written.get("model").filter(|node| !node.entries().is_empty()) {
        let mut live = serde_json::Map::from_iter([("name".to_owned(), Value::from(definition.model.name.as_str()))]);
        live.extend(std::mem::take(&mut definition.model.config));
        let Value::Object(mut config) = node.to_json() else { return Ok(()) };
        config.remove("name");
        definition.model.config = config;
        definition.model = definition.model.clone().live(Value::Object(live));
    }
    let agents = written.get("sub_agents").map(Node::entries).unwrap_or_default();
    for entry in agents {
        if let (Some(sub_agent), Some(agent)) = (definition.sub_agents.get_mut(&entry.key), entry.node.get("agent")) {
            keep_written(&mut sub_agent.agent, agent)?;
        }
    }
    Ok(())
}
