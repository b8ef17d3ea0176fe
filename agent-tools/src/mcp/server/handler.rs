//! Request handler of a server.
#![expect(deprecated, reason = "logging and subscriptions of this form are on their way out, and clients have them")]

use std::{panic::AssertUnwindSafe, sync::Arc};

use agent_core::{Error, ErrorKind};
use futures::FutureExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo,
        ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
        PromptsCapability, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
        ResourcesCapability, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
        SubscriptionFilter, Tool as ServedTool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};

use super::{
    CompletionRequest, PromptRequest, Server,
    connection::{Connection, SUBSCRIPTIONS},
    content,
    page::page,
    run,
};

/// Time for which clients may take a list as current, in milliseconds: those that do not subscribe
/// to changes.
const LISTED: u64 = 60_000;

/// Handler of one connection.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) server: Server,
    pub(super) connection: Arc<Connection>,
}

/// Runs a handler function of the application. It is dropped when the client cancels the request; a
/// panic becomes an error, since the client would otherwise wait forever.
async fn ask<T>(
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = agent_core::Result<T>>,
) -> Result<T, ErrorData> {
    let done = tokio::select! {
        done = AssertUnwindSafe(work).catch_unwind() => done,
        () = context.ct.cancelled() => Ok(Err(Error::new(ErrorKind::Cancelled, "The request was cancelled."))),
    };
    let done = done.unwrap_or_else(|_| Err(Error::new(ErrorKind::Tool, "The server failed.")));
    // Details and causes are not disclosed.
    done.map_err(|error| match error.kind() {
        ErrorKind::InvalidRequest => ErrorData::invalid_params(error.message().to_owned(), None),
        _ => ErrorData::internal_error(error.message().to_owned(), None),
    })
}

fn no_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
}

/// Returns the text of an argument, whatever its JSON type.
fn text(value: Value) -> String {
    if let Value::String(text) = value { text } else { value.to_string() }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let (about, offers) = (&self.server.0.about, self.server.offers());
        let mut can = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        if !offers.lists.resources.is_empty() || !offers.lists.templates.is_empty() {
            let mut resources = ResourcesCapability::default();
            (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
            can.resources = Some(resources);
        }
        if !offers.lists.prompts.is_empty() {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            can.prompts = Some(prompts);
        }
        can.completions = offers.completes().then(Default::default);
        let info = ServerConfig::new(can);
        let info = info.with_server_info(Implementation::new(about.name.clone(), about.version.clone()));
        match &about.instructions {
            Some(text) => info.with_instructions(text.clone()),
            None => info,
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.connection.tell(context.peer);
        self.server.0.connections.add(&self.connection);
    }

    async fn list_tools(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (tools, next) = page(&self.server.offers().lists.tools, asked)?;
        Ok(ListToolsResult { next_cursor: next, ttl_ms: Some(LISTED), ..ListToolsResult::with_all_items(tools) })
    }

    fn get_tool(&self, name: &str) -> Option<ServedTool> {
        self.server.offers().lists.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offers = self.server.offers();
        let Some(entry) = offers.tool(&params.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool '{}'", params.name), None));
        };
        // A panic of a tool becomes an error response, since the client would otherwise wait
        // forever.
        let called = AssertUnwindSafe(run::call(self, entry, params, &context)).catch_unwind().await;
        called.unwrap_or_else(|_| Ok(CallToolResult::error(vec![ContentBlock::text("The tool failed.")]).into()))
    }

    async fn list_resources(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (resources, next) = page(&self.server.offers().lists.resources, asked)?;
        let result = ListResourcesResult::with_all_items(resources);
        Ok(ListResourcesResult { next_cursor: next, ttl_ms: Some(LISTED), ..result })
    }

    async fn list_resource_templates(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (templates, next) = page(&self.server.offers().lists.templates, asked)?;
        let result = ListResourceTemplatesResult::with_all_items(templates);
        Ok(ListResourceTemplatesResult { next_cursor: next, ttl_ms: Some(LISTED), ..result })
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let offers = self.server.offers();
        let Some((asked, read, mime)) = offers.resource(&params.uri) else { return Err(no_resource(&params.uri)) };
        let output = ask(&context, async { read(asked).await }).await?;
        let contents = content::resource(&output, &params.uri, mime);
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(contents)))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let (mut accepted, offers) = (requested.clone(), self.server.offers());
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| offers.resource(uri).is_some());
            uris.truncate(SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let connection = Arc::new(Connection::default());
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            connection.subscribe(uri.clone());
        }
        self.server.0.connections.add(&connection);
        tokio::select! {
            () = connection.tell_listener(subscription.sink()) => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }

    async fn subscribe(&self, params: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.server.offers().resource(&params.uri).is_none() {
            return Err(no_resource(&params.uri));
        }
        if !self.connection.subscribe(params.uri) {
            return Err(ErrorData::invalid_request("too many resources are subscribed to", None));
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.unsubscribe(&params.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (prompts, next) = page(&self.server.offers().lists.prompts, asked)?;
        Ok(ListPromptsResult { next_cursor: next, ttl_ms: Some(LISTED), ..ListPromptsResult::with_all_items(prompts) })
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let offers = self.server.offers();
        let Some((about, make)) = offers.prompt(&params.name) else {
            return Err(ErrorData::invalid_params(format!("there is no prompt '{}'", params.name), None));
        };
        let arguments = params.arguments.unwrap_or_default().into_iter();
        let asked = PromptRequest { arguments: arguments.map(|(name, value)| (name, text(value))).collect() };
        let is_missing = |name: &String| !asked.arguments.contains_key(name);
        let mut required = about.arguments.iter().filter(|argument| argument.required).map(|argument| &argument.name);
        if let Some(name) = required.find(|name| is_missing(name)) {
            let message = format!("the prompt '{}' needs the argument '{name}'", about.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let messages = ask(&context, async { content::prompt(&make(asked).await?) }).await?;
        let mut made = GetPromptResult::new(messages);
        made.description.clone_from(&about.description);
        Ok(GetPromptResponse::Complete(made))
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let offers = self.server.offers();
        let of = match &params.r#ref {
            Reference::Prompt(prompt) => &prompt.name,
            Reference::Resource(template) => &template.uri,
            _ => return Err(ErrorData::invalid_params("neither a prompt nor a template", None)),
        };
        let known = params.context.and_then(|context| context.arguments).unwrap_or_default();
        let asked = CompletionRequest { typed: params.argument.value, arguments: known.into_iter().collect() };
        let mut values = match offers.completion(of, &params.argument.name) {
            Some(complete) => ask(&context, async { complete(asked).await }).await?,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(CompletionInfo::MAX_VALUES);
        let has_more = total > values.len();
        let completion = CompletionInfo::with_pagination(values, u32::try_from(total).ok(), has_more);
        Ok(CompleteResult::new(completion.map_err(|why| ErrorData::internal_error(why, None))?))
    }

    async fn set_level(&self, params: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let level: LoggingLevel = params.level;
        self.connection.set_level(level.into());
        Ok(())
    }
}
