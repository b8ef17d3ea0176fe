//! `agent doctor`.

mod file;
mod machine;
mod plugin;
mod team;

use agent::{Error, Result};
use serde_json::json;

use crate::{
    cli::{Doctor, Global},
    load::loader,
    output::{End, plain, print, print_json},
};

/// Something that was looked at.
struct Finding {
    what: String,
    /// False if it keeps something from working.
    is_well: bool,
    found: String,
    /// Advice, if it is a problem.
    advice: Option<String>,
}

impl Finding {
    fn well(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), is_well: true, found: found.into(), advice: None }
    }

    fn ill(what: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), is_well: false, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Looks at what agents need here, or at what an agent's file or a plugin's folder needs. It ends with 1 if something does not work.
pub(crate) async fn doctor(wanted: &Doctor, global: &Global) -> Result<End> {
    let findings = match wanted.place.as_ref().or(global.file.as_ref()) {
        Some(folder) if folder.is_dir() => plugin::findings(folder)?,
        Some(file) if !file.exists() => return Err(Error::config(format!("there is no file '{}'", file.display()))),
        Some(file) if loader(global).is_team(file) => team::findings(file, wanted, global).await,
        Some(file) => file::findings(file, wanted, global).await,
        None => machine::findings(wanted, global).await,
    };
    let is_well = findings.iter().all(|finding| finding.is_well);
    for finding in &findings {
        if global.json {
            let Finding { what, is_well, found, advice } = finding;
            print_json(&json!({"what": what, "well": is_well, "found": found, "do": advice}))?;
        } else {
            print(&plain(&shown(finding)))?;
        }
    }
    Ok(if is_well { End::Finished } else { End::Failed })
}

fn shown(finding: &Finding) -> String {
    let mark = if finding.is_well { "ok" } else { "!!" };
    let found = finding.found.trim_end().replace('\n', "\n                 ");
    let mut text = format!("{mark}  {:<12} {found}\n", finding.what);
    if let Some(advice) = &finding.advice {
        text.push_str(&format!(
            "                 do: {}\n",
            advice.trim_end().replace('\n', "\n                     ")
        ));
    }
    text
}
