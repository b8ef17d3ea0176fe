//! [`A2aAgent`]: remote agent at a URL.

mod binding;
mod builder;
mod client;
mod errand;
mod guard;
mod wire;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use tokio::sync::OnceCell;
use url::Url;

pub use self::builder::A2aBuilder;
use self::{binding::Target, client::Client, errand::Errand, wire::Card};
use super::Args;

/// Kind of a question of an agent that needs input to continue a task. Its payload has the `agent`,
/// the `task`, the `state` (`input-required` or `auth-required`) and the agent's `message`; the
/// answer is a text.
pub const A2A_INPUT: &str = "a2a_input";

/// Path of the agent card, below the agent's URL.
const CARD: &str = ".well-known/agent-card.json";

/// Agent that speaks Agent2Agent 1.0 (JSON-RPC or HTTP+JSON) or 0.3 (JSON-RPC), as a tool with the
/// argument `message`.
///
/// The first call fetches the agent's card from `.well-known/agent-card.json` below the URL, and
/// chooses the newest version that it offers. The
/// endpoint must have the same origin, since headers with secrets must not be sent elsewhere. A
/// task is followed as a stream if the agent supports streaming, and polled otherwise. [The
/// module](crate::peers) describes the mapping to the run.
///
/// The [value](ToolOutput::as_value) of the result has `answer`, `task`, `context`, and `artifacts`
/// in the form of version 0.3. Images among the artifacts are also part of the content for the model.
///
/// ```
/// use agent_tools::peers::A2aAgent;
///
/// let travel = A2aAgent::builder("https://agents.example.org/travel").bearer("hush").build()?;
/// assert!(!format!("{travel:?}").contains("hush"));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct A2aAgent(Arc<Inner>);

struct Inner {
    url: Url,
    name: String,
    client: Client,
    deduplicates: bool,
    #[cfg(feature = "workspace")]
    workspace: Option<crate::Workspace>,
    time: Duration,
    poll: Duration,
    site: OnceCell<Site>,
}

/// Agent with its card.
struct Site {
    name: String,
    target: Target,
    streams: bool,
}

impl A2aAgent {
    /// Returns a builder for the agent whose card is below this URL.
    pub fn builder(url: impl Into<String>) -> A2aBuilder {
        A2aBuilder::new(url.into())
    }
}

impl Inner {
    async fn site(&self) -> Result<&Site> {
        self.site.get_or_try_init(|| self.read_card()).await
    }

    async fn read_card(&self) -> Result<Site> {
        let mut base = self.url.clone();
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let url = base.join(CARD).map_err(|e| Error::config("the agent's card has no address").with_source(e))?;
        let card: Card = self.client.get(&url).await?;
        let target = Target::of_card(&card, &self.url)?;
        Ok(Site { name: crate::text::cut(&card.name, 100).to_owned(), target, streams: card.capabilities.streaming })
    }
}

#[async_trait]
impl Tool for A2aAgent {
    fn spec(&self) -> ToolSpec {
        #[cfg(feature = "workspace")]
        let takes_files = self.0.workspace.is_some();
        #[cfg(not(feature = "workspace"))]
        let takes_files = false;
        super::spec(&self.0.name, "Hands a task to an agent elsewhere and returns its answer.", takes_files)
    }

    /// A call is re-entered after a crash: the journal records the sent message, so that its task
    /// can be found.
    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent).serial()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let args: Args = req.parse()?;
        let errand = Box::pin(async {
            let site = self.0.site().await?;
            Errand::new(&self.0, site, &req).run(args).await
        });
        super::in_time(&self.0.name, self.0.time, errand).await
    }
}

impl fmt::Debug for A2aAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = format!("{}{}", self.0.url.origin().ascii_serialization(), self.0.url.path());
        f.debug_struct("A2aAgent").field("name", &self.0.name).field("url", &place).finish_non_exhaustive()
    }
}
