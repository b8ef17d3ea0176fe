//! `agent export`.

mod html;
pub(crate) mod markdown;

use agent::{Result, core::Journal, history::History, journal::SessionInfo, store::export as lines};
use futures::TryStreamExt;

use crate::{
    cli::{Export, Format, Global},
    output::{End, print},
    store::{agent_of, existing},
};

/// A session as it is written for people.
pub(crate) struct Chapter {
    name: String,
    info: SessionInfo,
    /// The conversations, each with its agent's name.
    sides: Vec<(String, History)>,
}

/// Writes sessions.
pub(crate) async fn export(wanted: Export, global: &Global) -> Result<End> {
    let journal = existing(global).await?;
    for name in &wanted.sessions {
        agent_of(&*journal, name, None).await?;
    }
    let sessions = if wanted.sessions.is_empty() { journal.sessions().await? } else { wanted.sessions };
    match wanted.format {
        Format::Jsonl => {
            let mut lines = std::pin::pin!(lines(&*journal, sessions));
            while let Some(line) = lines.try_next().await? {
                print(&format!("{line}\n"))?;
            }
        }
        Format::Markdown => {
            for name in sessions {
                print(&markdown::chapter(&chapter(&*journal, name).await?))?;
            }
        }
        Format::Html => {
            print(html::HEAD)?;
            for name in sessions {
                print(&html::chapter(&chapter(&*journal, name).await?))?;
            }
            print(html::FOOT)?;
        }
    }
    Ok(End::Finished)
}

async fn chapter(journal: &dyn Journal, name: String) -> Result<Chapter> {
    let index = journal.whole_index(&name).await?;
    Ok(index.look(|index| {
        let info = index.info().clone();
        let sides = info.agents.iter().map(|agent| (agent.to_string(), index.history(agent))).collect();
        Chapter { name, info, sides }
    }))
}
