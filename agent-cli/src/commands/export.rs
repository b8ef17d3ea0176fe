//! `agent export`.

use agent::{Result, core::Journal, store::export as lines};
use agent_server::export::{Chapter, HTML_FOOT, HTML_HEAD};
use futures::TryStreamExt;
use serde_json::json;

use crate::{
    cli::{Export, Format, Global},
    output::{End, print, print_json},
    store::{agent_of, existing},
};

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
                let text = Chapter::read(&*journal, &name, name.as_str()).await?.markdown();
                match global.json {
                    true => print_json(&json!({"session": name, "markdown": text}))?,
                    false => print(&text)?,
                }
            }
        }
        Format::Html if global.json => {
            for name in sessions {
                let text = Chapter::read(&*journal, &name, name.as_str()).await?.html();
                print_json(&json!({"session": name, "html": format!("{HTML_HEAD}{text}{HTML_FOOT}")}))?;
            }
        }
        Format::Html => {
            print(HTML_HEAD)?;
            for name in sessions {
                print(&Chapter::read(&*journal, &name, name.as_str()).await?.html())?;
            }
            print(HTML_FOOT)?;
        }
    }
    Ok(End::Finished)
}
