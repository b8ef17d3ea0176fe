//! The innermost tool call, as a journalled step.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use crate::engine::Opened;
use agent_core::{
    BoxFuture, Deadlines, Effect, Error, Question, Result, RunCx, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
    boxed,
    budget::Amounts,
    engine::{CallBody, ToolStep, UNKNOWN_OUTCOME},
    run::{DeadlineKind, checkpoint::Begun},
    tool::{Doubt, OutputText, Reconciled, value_to_text},
};
use agent_tools::{ArgumentSchema, Arguments};
use futures::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::Service;

/// A tool with its compiled schema and options.
pub(crate) struct ToolBody {
    tool: Arc<dyn Tool>,
    name: Arc<str>,
    options: Arc<ToolOptions>,
    schema: ArgumentSchema,
    /// Arguments that the agent injects and that the schema does not declare.
    unseen: Vec<String>,
    permits: Option<Semaphore>,
    timeout: Option<Duration>,
}

impl ToolBody {
    pub(super) fn new(
        tool: Arc<dyn Tool>,
        spec: &ToolSpec,
        schema: ArgumentSchema,
        options: Arc<ToolOptions>,
        deadlines: &Deadlines,
    ) -> Self {
        let permits = options.concurrency.map(Semaphore::new);
        let seen = &spec.parameters["properties"];
        let unseen = options.args.keys().filter(|arg| seen.get(arg).is_none()).cloned().collect();
        let timeout = deadlines.of_tool(&spec.name, options.timeout);
        Self { tool, name: spec.name.as_str().into(), options, schema, unseen, permits, timeout }
    }

    /// Parses the model's arguments: repairs the JSON, renames aliases and coerces types.
    pub(crate) fn parse(&self, arguments: &str) -> Arguments {
        self.schema.parse_with(arguments, &self.options.aliases)
    }

    /// Adds the arguments that the agent and the state inject, if there are any; the model's own
    /// arguments take precedence.
    fn complete(&self, cx: &RunCx, args: &Arc<Value>) -> Option<Arc<Value>> {
        if self.options.args.is_empty() && self.options.reads.is_empty() {
            return None;
        }
        let mut all = args.as_object().cloned().unwrap_or_else(Map::new);
        for read in &self.options.reads {
            if !all.contains_key(&read.param)
                && let Some(value) = cx.state().get_value(&read.key)
            {
                all.insert(read.param.clone(), value);
            }
        }
        for (name, value) in &self.options.args {
            all.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Some(Arc::new(Value::Object(all)))
    }

    /// Checks the arguments as the tool would receive them now. Error messages do not show values
    /// injected by the agent or the state.
    pub(crate) fn check(&self, cx: &RunCx, args: &Arc<Value>) -> Result<()> {
        let mut complete = self.complete(cx, args);
        if !self.unseen.is_empty()
            && let Some(fields) = Arc::make_mut(complete.get_or_insert_with(|| args.clone())).as_object_mut()
        {
            fields.retain(|name, _| !self.unseen.contains(name));
        }
        let hidden: Vec<&str> = self
            .options
            .reads
            .iter()
            .map(|read| read.param.as_str())
            .chain(self.options.args.keys().map(String::as_str))
            .filter(|name| args.get(name).is_none())
            .collect();
        self.schema.check(complete.as_ref().unwrap_or(args), &hidden)
    }

    /// Renders the value as text for the model, according to the tool's options.
    fn render(&self, output: ToolOutput) -> Result<ToolOutput> {
        let Some(value) = output.as_value().filter(|_| !output.is_error()) else { return Ok(output) };
        let field = |source: &Option<String>| match source {
            Some(source) => value.get(source).cloned().unwrap_or(Value::Null),
            None => value.clone(),
        };
        let parts = match &self.options.text {
            OutputText::Field { source, render: Some(render) } => render(&field(source))?,
            OutputText::Field { source, render: None } => vec![value_to_text(&field(source)).into()],
            OutputText::Fields(fields) => {
                let texts = fields.iter().map(|(name, source)| {
                    format!(
                        "{}: {}",
                        Value::from(name.as_str()),
                        Value::from(value_to_text(&field(&Some(source.clone()))))
                    )
                });
                vec![format!("{{{}}}", texts.collect::<Vec<_>>().join(", ")).into()]
            }
            _ => return Ok(output),
        };
        Ok(output.shown_as(parts))
    }

    /// Returns the injected texts among the arguments. A failing tool may repeat them in its error,
    /// which the model must not see.
    fn injected(given: &Value, complete: &Value) -> Vec<String> {
        let not_given = complete.as_object().into_iter().flatten().filter(|(name, _)| given.get(name).is_none());
        not_given.filter_map(|(_, value)| value.as_str()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    }

    /// As [`attempt`](Self::attempt), with the `injected` texts removed from error messages.
    async fn run(&self, request: ToolRequest, injected: &[String]) -> Result<ToolOutput> {
        let hide = |text: &str| injected.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[hidden]"));
        match self.attempt(request).await {
            Err(e) if !injected.is_empty() => Err(e.map_message(hide)),
            Ok(mut output) if !injected.is_empty() && output.is_error() => {
                output.edit_text(hide);
                Ok(output)
            }
            result => result,
        }
    }

    /// Resolves a call that an earlier attempt began, as recorded in `begun`, and left without a
    /// result. Returns its output if it happened, or `None` if it is to run. The more cautious of
    /// the recorded and the current effect applies.
    async fn look_into(&self, request: &ToolRequest, begun: Begun) -> Result<Option<ToolOutput>> {
        let found = match begun.effect.max(self.options.effect) {
            // Its sub-agents are resumed, and it does nothing else.
            _ if self.options.delegates => Reconciled::DidNot,
            Effect::Pure | Effect::Idempotent => Reconciled::DidNot,
            Effect::Reconcilable => {
                let mut request = request.clone();
                if let Some(complete) = self.complete(&request.cx, &request.args) {
                    request.fill_in(complete);
                }
                self.tool.reconcile(request).await.unwrap_or(Reconciled::Unknown)
            }
            _ => Reconciled::Unknown,
        };
        match found {
            Reconciled::Happened(output) => self.render(output).map(Some),
            Reconciled::DidNot => Ok(None),
            _ => self.ask_about(request, &begun),
        }
    }

    fn ask_about(&self, request: &ToolRequest, begun: &Begun) -> Result<Option<ToolOutput>> {
        let key = request.idempotency_key();
        let payload = json!({ "tool": *self.name, "arguments": *request.args, "idempotency_key": key });
        Ok(match request.ask_once(Doubt::KIND, &begun.attempt, payload)? {
            Doubt::Happened(value) => Some(self.render(ToolOutput::value(value))?),
            Doubt::DidNot => None,
            _ => Some(ToolOutput::error(UNKNOWN_OUTCOME)),
        })
    }

    /// Makes one attempt: within the timeout, and with a panic turned into an error.
    async fn attempt(&self, request: ToolRequest) -> Result<ToolOutput> {
        let name = &self.name;
        let call = async { self.render((*self.tool).call(request).await?) };
        let call = pin!(AssertUnwindSafe(call).catch_unwind());
        let result = match self.timeout {
            None => call.await,
            Some(most) => tokio::time::timeout(most, call).await.map_err(|_| {
                let message = format!("Tool '{name}' timed out after {} ms.", most.as_millis());
                DeadlineKind::Tool.passed(message, most)
            })?,
        };
        result.unwrap_or_else(|_| Err(Error::tool(format!("Tool '{name}' failed unexpectedly."))))
    }
}

/// The innermost tool service: completes and checks the arguments, and makes the call as a
/// journalled step.
#[derive(Clone)]
pub(crate) struct ToolCore(Arc<ToolBody>);

impl ToolCore {
    pub(crate) fn new(body: Arc<ToolBody>) -> Self {
        Self(body)
    }
}

/// One try at a tool call, as budgets count it.
fn one_call() -> Amounts {
    Amounts::none().tool_calls(1)
}

/// A call on its way through its [`CallLog`](agent_core::engine::CallLog).
struct Body<'a> {
    body: &'a ToolBody,
    /// As the hooks and layers left it.
    request: &'a ToolRequest,
    /// Held while the tool runs.
    permit: Mutex<Option<SemaphorePermit<'a>>>,
}

impl CallBody for Body<'_> {
    fn settle(&self, begun: Begun) -> BoxFuture<'_, Result<Option<ToolOutput>>> {
        Box::pin(self.body.look_into(self.request, begun))
    }

    async fn allow(&self) -> Result<()> {
        let (body, cx) = (self.body, &self.request.cx);
        if !self.request.is_checked() {
            body.check(cx, &self.request.args)?;
        }
        if let Some(permits) = &body.permits {
            let permit = permits.acquire().await.map_err(|e| Error::tool("the tool is closed").with_source(e))?;
            self.permit.lock().unwrap_or_else(PoisonError::into_inner).replace(permit);
        }
        if cx.budget().is_unlimited() {
            return Ok(());
        }
        // Settled as soon as the call begins: child runs that wait for this call's end must not
        // wait for its settlement. Boxed, because few calls need this future and the others should
        // not reserve space for it.
        boxed(|| async { cx.budget().reserve(one_call()).await?.settle(one_call()).await }).await
    }

    fn count_again(&self) {
        self.request.cx.budget().count_again(one_call());
    }

    async fn run(&self) -> Result<ToolOutput> {
        let (body, mut request) = (self.body, self.request.clone());
        let mut injected = Vec::new();
        if let Some(complete) = body.complete(&request.cx, &request.args) {
            injected = ToolBody::injected(&request.args, &complete);
            request.fill_in(complete);
        }
        request.cx = request.cx.engine().of_call(&request.call.id);
        body.run(request, &injected).await
    }

    fn asked(&self) -> Option<Vec<Question>> {
        self.request.cx.engine().asked_by(&self.request.call.id)
    }
}

impl Service<ToolRequest> for ToolCore {
    type Response = ToolOutput;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ToolOutput>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        let body = self.0.clone();
        boxed(|| async move {
            let cx = request.cx.clone();
            let mut step = ToolStep::new(cx.step(), request.call.id.clone(), body.name.clone(), body.options.effect);
            step.delegates = body.options.delegates;
            let call = Body { body: &body, request: &request, permit: Mutex::default() };
            let result = cx.engine().log().open_call(step).run(&call).await;
            if let Err(e) = &result
                && !e.questions().is_empty()
            {
                cx.engine().asked_before(e.questions());
            }
            cx.engine().count_uncounted();
            result
        })
    }
}
