//! Export of sessions for people: Markdown, and one self-contained HTML page.

mod html;
mod markdown;
mod words;

use agent::{
    Result,
    history::History,
    journal::{Journal, SessionInfo},
};

pub use self::{
    html::{HTML_FOOT, HTML_HEAD},
    markdown::conversation,
    words::{moment, plain},
};

/// Exported session.
///
/// ```
/// use agent::{Agent, RunRequest, journal::MemoryJournal, testing::{ScriptedModel, Turn}};
/// use agent_server::export::Chapter;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let journal = MemoryJournal::default();
/// let agent = Agent::builder("a", ScriptedModel::new([Turn::text("Hello.")])).store(journal.clone()).build()?;
/// agent.start(RunRequest::user("Hi.").session("garden")).await?;
/// assert!(Chapter::read(&journal, "garden", "garden").await?.markdown().contains("**Assistant**\n\nHello."));
/// # Ok::<(), agent::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Chapter {
    name: String,
    info: SessionInfo,
    /// Conversations, each with its agent's name.
    sides: Vec<(String, History)>,
}

impl Chapter {
    /// Reads a session, which is exported under `name`.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn read(journal: &dyn Journal, session: &str, name: impl Into<String>) -> Result<Self> {
        let index = journal.whole_index(session).await?;
        Ok(index.look(|index| {
            let info = index.info().clone();
            let sides = info.agents.iter().map(|agent| (agent.to_string(), index.history(agent))).collect();
            Self { name: name.into(), info, sides }
        }))
    }

    /// Formats the session as Markdown.
    pub fn markdown(&self) -> String {
        markdown::chapter(self)
    }

    /// Formats the session as HTML, between [`HTML_HEAD`] and [`HTML_FOOT`].
    pub fn html(&self) -> String {
        html::chapter(self)
    }
}
