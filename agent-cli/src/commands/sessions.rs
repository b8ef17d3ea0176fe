//! `agent sessions`.

use agent::{Error, Result, core::Journal, journal::SessionInfo};
use serde_json::json;

use crate::{
    cli::{Global, Sessions, SessionsAct},
    output::{End, line, moment, print, print_json, table},
    store::{existing, title},
};

/// Lists, searches and deletes sessions.
pub(crate) async fn sessions(wanted: Sessions, global: &Global) -> Result<End> {
    let journal = existing(global).await?;
    match wanted.act {
        None => list(&*journal, all(&*journal).await?, wanted.limit, global).await,
        Some(SessionsAct::Search { text }) => {
            let mut found = Vec::new();
            for (name, info) in all(&*journal).await? {
                if has(&*journal, &name, &info, &text.to_lowercase()).await? {
                    found.push((name, info));
                }
            }
            list(&*journal, found, usize::MAX, global).await
        }
        Some(SessionsAct::Delete { sessions }) => {
            let mut missing = Vec::new();
            for name in sessions {
                let deleted = journal.delete(&name).await?;
                if global.json {
                    print_json(&json!({"session": name, "deleted": deleted}))?;
                }
                if !deleted {
                    missing.push(name);
                }
            }
            if missing.is_empty() { Ok(End::Finished) } else { Err(unknown(&missing.join("', '"))) }
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::config(format!("there is no session '{name}': `agent sessions` lists those there are"))
}

/// All sessions with what is known of them, the newest first.
async fn all(journal: &dyn Journal) -> Result<Vec<(String, SessionInfo)>> {
    let mut all = Vec::new();
    for name in journal.sessions().await? {
        if let Some(info) = journal.info(&name).await? {
            all.push((name, info));
        }
    }
    all.sort_by_key(|(_, info)| std::cmp::Reverse(info.updated));
    Ok(all)
}

/// True if the session's name, title or messages have the text in them, which is in small letters.
async fn has(journal: &dyn Journal, name: &str, info: &SessionInfo, text: &str) -> Result<bool> {
    let fits = |said: &str| said.to_lowercase().contains(text);
    if fits(name) || info.title.as_deref().is_some_and(fits) {
        return Ok(true);
    }
    let index = journal.whole_index(name).await?;
    let said = |agent| index.look(|index| index.history(agent).iter().any(|message| fits(&message.text())));
    Ok(info.agents.iter().any(|agent| said(agent)))
}

async fn list(
    journal: &dyn Journal,
    sessions: Vec<(String, SessionInfo)>,
    most: usize,
    global: &Global,
) -> Result<End> {
    let left_out = sessions.len().saturating_sub(most);
    let sessions = sessions.into_iter().take(most);
    if global.json {
        for (name, info) in sessions {
            print_json(&json!({"session": name, "info": info}))?;
        }
        return Ok(End::Finished);
    }
    let mut rows = vec![["session", "runs", "updated (UTC)", "agents", "title"].map(str::to_owned).to_vec()];
    for (name, info) in sessions {
        let title = line(&title(journal, &name, &info).await?, 60);
        rows.push(vec![line(&name, 60), info.runs.to_string(), moment(info.updated), info.agents.join(", "), title]);
    }
    let mut text = table(&rows);
    if left_out > 0 {
        text.push_str(&format!("and {left_out} older: --limit {}\n", left_out + rows.len() - 1));
    }
    print(&text)?;
    Ok(End::Finished)
}
