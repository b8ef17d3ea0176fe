//! Structured output: [`Structured`].

mod find;
mod form;
mod invalid;
mod limits;
mod mode;
mod partial;
mod plain;

use std::{
    collections::BTreeSet,
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{
    Chunk, Error, ErrorKind, EventKind, Exit, ExitReason, FinishReason, Message, Middleware, Model, ModelNext,
    ModelRequest, ModelResponse, Placement, Result, Retry, RunCx, Verdict, async_trait,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::{find::json_in, invalid::InvalidAnswer, mode::AnswerMode, partial::PartialAnswer};
use self::{form::Form, mode::settled};
use crate::schema;

/// Makes a model answer with a value of the type `T`: in an agent's final answer, or in a single
/// model call.
///
/// The model receives the JSON Schema of `T` in the form that [`AnswerMode`] selects. Its answer is
/// parsed leniently (prose and code fences around the JSON, syntax errors) and validated. If the
/// answer is invalid, the model gets a list of all problems and answers again, at most
/// [`retries`](Self::retries) times; if the last answer is invalid too, the call fails with
/// [`ErrorKind::InvalidAnswer`], which holds the text.
///
/// With [`AnswerMode::Auto`], a schema that the provider refuses to enforce costs one request: the
/// model is then asked by a tool, or in the prompt, and so it is for the rest of the process.
///
/// # On an agent
///
/// `Structured` is a middleware. The agent may have tools: messages with tool calls pass unchanged.
/// The text of the final answer is replaced by the JSON of the value, so that
/// [`Finished::parse`](agent_core::Finished::parse) reads it.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_tools::Structured;
///
/// /// How the weather is.
/// #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
/// struct Weather {
///     /// In degrees Celsius.
///     temperature: f64,
///     /// Whether it rains.
///     rain: bool,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// # let model = ScriptedModel::new([Turn::text("It is {\"temperature\": 21.5, \"rain\": false} in Bern.")]);
/// # let run = agent_core::testing::detached_run(agent_core::History::from_messages([agent_core::Message::user("Bern?")])?);
/// # let request = agent_core::ModelRequest::new(run.cx().clone());
/// // One call. An agent takes it with `.middleware(Structured::<Weather>::new()?)`.
/// let answer = Structured::<Weather>::new()?.call(&model, request).await?;
/// assert_eq!(answer.value, Weather { temperature: 21.5, rain: false });
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("answers");
/// ```
///
/// # Streaming
///
/// [`partial`](Self::partial) makes a reader of events or chunks that yields the partial answer.
///
/// # Order
///
/// Place `Structured` outside of retrying layers, so that each of its calls is retried
/// independently:
///
/// ```text
/// // right
/// builder.middleware(Structured::<Weather>::new()?).model_layer(RetryLayer::new())
/// // wrong: where the second call fails for a moment, both are made again
/// builder.model_layer(RetryLayer::new()).middleware(Structured::<Weather>::new()?)
/// ```
pub struct Structured<T = Value> {
    form: Arc<Form>,
    mode: AnswerMode,
    retries: u32,
    accept: Accept,
    /// Names of models whose providers refused the schema.
    refused: Arc<Mutex<BTreeSet<String>>>,
    of: PhantomData<fn() -> T>,
}

type Accept = Arc<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// Answer of a model call; made by [`Structured::call`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer<T> {
    /// Parsed answer.
    pub value: T,
    /// Model response. Its usage includes the calls whose answers were rejected.
    pub response: ModelResponse,
}

impl<T: DeserializeOwned + JsonSchema + 'static> Structured<T> {
    /// Creates the format for the type `T`. The model receives the schema of the type, in which doc
    /// comments are descriptions.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the type's schema is invalid; derived schemas are valid.
    pub fn new() -> Result<Self> {
        let (schema, description) = schema::of_type::<T>();
        Self::build(&T::schema_name(), description, schema)
    }
}

impl Structured<Value> {
    /// Creates the format for a JSON Schema that is only known at run time. `name` is the name of
    /// the format.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if `schema` is invalid, or refers to other documents.
    pub fn from_schema(name: &str, schema: Value) -> Result<Self> {
        Self::build(name, None, schema)
    }
}

impl<T: DeserializeOwned + 'static> Structured<T> {
    fn build(name: &str, description: Option<String>, schema: Value) -> Result<Self> {
        let form = Arc::new(Form::new(name, description, schema)?);
        let accept = Arc::new(|value: &Value| T::deserialize(value).map(drop).map_err(|e| e.to_string()));
        Ok(Self { form, mode: AnswerMode::Auto, retries: 1, accept, refused: Arc::default(), of: PhantomData })
    }

    /// Adds a custom check. The model receives its error message together with the schema
    /// violations.
    #[must_use]
    pub fn check(mut self, check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static) -> Self {
        let before = self.accept;
        self.accept = Arc::new(move |value| {
            before(value)?;
            T::deserialize(value).map_err(|e| e.to_string()).and_then(|value| check(&value))
        });
        self
    }

    /// Parses an answer as leniently as the middleware does.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidAnswer`] with all problems of the answer; [`InvalidAnswer::of`] gives
    /// the text.
    pub fn read(&self, text: &str) -> Result<T> {
        let refused = |problems: String| InvalidAnswer { text: text.to_owned(), problems }.into_error();
        let value = self.form.read(text, &*self.accept).map_err(refused)?;
        T::deserialize(value).map_err(|e| refused(e.to_string()))
    }

    /// Makes one model call, and further ones while the answer needs correction.
    ///
    /// # Errors
    /// Errors of the model; [`ErrorKind::InvalidAnswer`] if the last answer is invalid;
    /// [`ErrorKind::Config`] if the request offers tools, which only an agent can run.
    pub async fn call(&self, model: &(impl Model + ?Sized), mut req: ModelRequest) -> Result<Answer<T>> {
        if !req.tools.is_empty() {
            return Err(Error::config("one model call cannot run tools: offer none, or use an agent"));
        }
        req.model.get_or_insert_with(|| Arc::new(model.info()));
        let response = self.answer(req, |req| model.call(req)).await?;
        Ok(Answer { value: self.read(&response.message.text())?, response })
    }
}

impl<T> Structured<T> {
    /// Sets the method by which the model is made to answer in the format. Default:
    /// [`AnswerMode::Auto`].
    #[must_use]
    pub fn mode(mut self, mode: AnswerMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether the provider must reject a schema that it cannot enforce strictly. The type
    /// must then meet the provider's requirements (at most providers: every field required, no
    /// additional ones). Default: false.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        Arc::make_mut(&mut self.form).format.strict = strict;
        self
    }

    /// Sets how many times the model is asked again after an invalid answer. Default: 1.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Returns a reader of the answer while it is streamed.
    pub fn partial(&self) -> PartialAnswer {
        PartialAnswer::new(self.form.clone())
    }

    /// Calls the model until the answer is valid, or calls tools, or no retries are left. A
    /// correction follows the original conversation and the answer that it corrects.
    async fn answer<F: Future<Output = Result<ModelResponse>> + Send>(
        &self,
        req: ModelRequest,
        ask: impl Fn(ModelRequest) -> F + Send + Sync,
    ) -> Result<ModelResponse> {
        let mut mode = self.choose(&req);
        let ask = async |mut req: ModelRequest, mode: AnswerMode| {
            mode.ask(&self.form, &mut req)?;
            ask(req).await.map(settled)
        };
        let mut response = match ask(req.clone(), mode).await {
            Err(refused) if self.mode == AnswerMode::Auto && mode == AnswerMode::Native && is_about_form(&refused) => {
                self.remember(&req, &refused);
                mode = self.choose(&req);
                ask(req.clone(), mode).await?
            }
            first => first?,
        };
        for _ in 0..self.retries {
            let Err(refused) = self.judge(&response)? else { return Ok(response) };
            let mut again = req.clone();
            if response.message.has_text() {
                again.messages.push(Message::Assistant(response.message))?;
            }
            again.messages.push(Message::user(mode.correction(&refused.problems)))?;
            again.sink.push(Chunk::Restart)?;
            let used = response.usage;
            response = ask(again, mode).await?;
            response.usage += used;
        }
        match self.judge(&response)? {
            Ok(()) => Ok(response),
            Err(refused) => Err(refused.into_error()),
        }
    }

    /// Returns the method for this request: another than [`AnswerMode::Native`] if the model's
    /// provider refused the schema before.
    fn choose(&self, req: &ModelRequest) -> AnswerMode {
        let is_refused = self.refused().contains(&name_of(req));
        self.mode.choose(req.model.as_deref(), &self.form, !is_refused)
    }

    /// Remembers that the provider of the request's model refuses the schema.
    fn remember(&self, req: &ModelRequest, refused: &Error) {
        self.refused().insert(name_of(req));
        let message = format!(
            "the provider refused the schema of the answer, which the model is asked for otherwise: {}",
            refused.message()
        );
        req.cx.emit(EventKind::Warning { message });
    }

    fn refused(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a response: `Ok(Ok(()))` if the answer is valid or the response calls tools.
    ///
    /// # Errors
    /// If another attempt cannot help.
    fn judge(&self, response: &ModelResponse) -> Result<Result<(), InvalidAnswer>> {
        if response.message.has_calls() || response.finish == FinishReason::Paused {
            return Ok(Ok(()));
        }
        let text = response.message.text();
        match response.finish {
            FinishReason::Length => {
                let problems = "it was cut at the token limit: raise ModelParams::max_tokens".to_owned();
                Err(InvalidAnswer { text, problems }.into_error())
            }
            FinishReason::ContentFilter => {
                let message = "the provider withheld the answer, or the rest of it";
                Err(Error::new(ErrorKind::ContentFiltered, message).with_retry(Retry::Permanent))
            }
            _ => {
                let read = self.form.read(&text, &*self.accept);
                Ok(read.map(drop).map_err(|problems| InvalidAnswer { text, problems }))
            }
        }
    }
}

fn name_of(req: &ModelRequest) -> String {
    req.model.as_ref().map(|info| format!("{}:{}", info.provider, info.name)).unwrap_or_default()
}

/// Returns true if the provider refused a request because of the schema of the answer: too large or
/// complex to compile, a keyword that it does not support, or no schemas at all.
fn is_about_form(refused: &Error) -> bool {
    const WORDS: [&str; 10] = [
        "schema",
        "response_format",
        "responseformat",
        "output_format",
        "output_config",
        "structured output",
        "text.format",
        "json mode",
        "grammar",
        "optional parameters",
    ];
    let said = refused.message().to_lowercase();
    refused.kind() == ErrorKind::InvalidRequest && WORDS.iter().any(|word| said.contains(word))
}

#[async_trait]
impl<T: 'static> Middleware for Structured<T> {
    fn name(&self) -> &str {
        "structured"
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        self.answer(req, |req| next.run(req)).await
    }

    /// The final text is the JSON alone, without the text around it in the message.
    async fn on_exit(&self, _: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        if !matches!(exit.reason, ExitReason::Tool(_))
            && let Ok(value) = self.form.read(&exit.answer, &*self.accept)
        {
            exit.answer = value.to_string();
        }
        Ok(Verdict::Proceed)
    }
}

impl<T> Clone for Structured<T> {
    fn clone(&self) -> Self {
        Self {
            form: self.form.clone(),
            mode: self.mode,
            retries: self.retries,
            accept: self.accept.clone(),
            refused: self.refused.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Structured<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Structured")
            .field("form", &self.form)
            .field("mode", &self.mode)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
