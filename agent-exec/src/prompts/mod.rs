//! Prompt templates, and the run inputs that fill them.

mod block;
mod inputs;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Error, Message, Result, RunRequest, StateField, StateSchema, run::RunInput};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::template::Template;

/// Key of the recorded decision that holds a run's system prompt, so that the prompt stays the same
/// when another process resumes the run.
pub(crate) const SYSTEM_PROMPT: &str = "system_prompt";

/// Variables of the prompts that each run must supply.
///
/// Serialised as `"all"`, `"none"`, or `{"only": ["city"]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequiredVariables {
    /// All variables.
    #[default]
    All,
    /// These variables; the others default to empty texts.
    Only(BTreeSet<String>),
    /// No variable.
    None,
}

impl RequiredVariables {
    /// Requires these variables and no others.
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
            Self::None => false,
        }
    }
}

/// The prompts of an agent as configured.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptParts {
    pub(crate) system: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) required: RequiredVariables,
    pub(crate) inputs: BTreeMap<String, StateField>,
}

/// The prompts of an agent, compiled and checked.
pub(crate) struct Prompts {
    system: Option<Template>,
    user: Option<Template>,
    required: RequiredVariables,
    inputs: BTreeMap<String, StateField>,
}

/// Rendered prompts and inputs of one run.
#[derive(Default)]
pub(crate) struct Rendered {
    /// The system prompt, if it has a template.
    pub(crate) system: Option<Result<String>>,
    /// The user message that is appended to the messages of the request.
    pub(crate) user: Option<Message>,
    /// Inputs that are values of the state.
    pub(crate) state: BTreeMap<String, Value>,
}

impl Prompts {
    pub(crate) fn new(parts: &PromptParts, state: &StateSchema) -> Result<Self> {
        let prompts = Self {
            system: parts.system.as_deref().map(Template::system).transpose()?,
            user: parts.user.as_deref().map(Template::user).transpose()?,
            required: parts.required.clone(),
            inputs: inputs::checked(&parts.inputs, state)?,
        };
        let variables = variables(prompts.system.as_ref(), prompts.user.as_ref());
        inputs::check_names(&variables, state)?;
        if let RequiredVariables::Only(names) = &prompts.required
            && let Some(unused) = names.iter().find(|name| !variables.contains(name.as_str()))
        {
            let known = inputs::list(variables.iter().copied());
            return Err(Error::config(format!(
                "variable '{unused}' is required, but no prompt has it; their variables are: {known}"
            )));
        }
        Ok(prompts)
    }

    /// Renders the prompts and run inputs of a request. A resumed run uses the rendered system
    /// prompt only if it has not recorded one yet, so errors about missing inputs are returned
    /// inside the result for it.
    ///
    /// # Errors
    /// Errors in the inputs of a new run.
    pub(crate) fn render(&self, request: &RunRequest, schema: &StateSchema) -> Result<Rendered> {
        if self.is_empty()
            && request.inputs.is_empty()
            && request.system_prompt.is_none()
            && request.user_prompt.is_none()
        {
            return Ok(Rendered::default());
        }
        let of_run =
            |prompt: &Option<String>, read: fn(&str) -> Result<Template>| prompt.as_deref().map(read).transpose();
        let (system, user) =
            (of_run(&request.system_prompt, Template::system)?, of_run(&request.user_prompt, Template::user)?);
        let (system, user) = (system.as_ref().or(self.system.as_ref()), user.as_ref().or(self.user.as_ref()));
        let variables = variables(system, user);
        inputs::check_names(&variables, schema)?;
        let given = inputs::sort(request, &variables, &self.inputs, schema)
            .and_then(|(given, state)| Ok((inputs::complete(given, &variables, &self.inputs, &self.required)?, state)));
        if !matches!(request.input, RunInput::Messages(_)) {
            let system = system.map(|system| system.render(&given?.0));
            return Ok(Rendered { system, ..Rendered::default() });
        }
        let (values, state) = given?;
        let system = system.map(|system| system.render(&values)).transpose()?;
        let user = user.map(|user| user.render(&values)).transpose()?;
        Ok(Rendered { system: system.map(Ok), user: user.map(Message::user), state })
    }

    fn is_empty(&self) -> bool {
        self.system.is_none() && self.user.is_none()
    }
}

/// Returns the variables of both prompts.
fn variables<'a>(system: Option<&'a Template>, user: Option<&'a Template>) -> BTreeSet<&'a str> {
    [system, user].into_iter().flatten().flat_map(Template::variables).collect()
}
