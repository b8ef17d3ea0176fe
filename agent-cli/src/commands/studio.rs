//! `agent studio`.

use std::{path::PathBuf, sync::Arc};

use agent::{Error, Result, core::Journal};
use agent_server::{OneTenant, Server, Studio};
use tokio::net::TcpListener;

use crate::{
    cli::{Global, Studio as Wanted},
    follow::Following,
    load::{assemble, is_agent_file},
    output::{End, announce, cannot},
    store::{self, existing},
    team,
};

/// Serves the page, over a store and agents if any are named, until somebody interrupts it.
pub(crate) async fn studio(wanted: Wanted, global: &Global) -> Result<End> {
    if !wanted.listen.ip().is_loopback() {
        let why =
            "the studio asks for no key, so it listens on this machine alone: name an address such as 127.0.0.1:4177";
        return Err(Error::config(why));
    }
    let (store, files) = named(&wanted, global);
    let place = Global { store, ..global.clone() };
    let journal = match files.is_empty() {
        true => existing(&place).await?,
        false => store::address(&place, None)?.open().await?,
    };
    let shown = store::shown(&place)?;
    let mut following = Following::default();
    let server = server(journal, &files, &wanted, global, &mut following)?;
    let listener = TcpListener::bind(wanted.listen).await.map_err(|e| cannot(wanted.listen, e))?;
    let at = listener.local_addr().map_err(|e| cannot("the address", e))?;
    announce(global, &format!("http://{at}/studio/"), &format!("{shown} is at http://{at}/studio/; Ctrl-C ends it"))?;
    let ended = async {
        if let Err(error) = agent::shutdown_signal().await {
            eprintln!("agent: no signal can be waited for: {error}");
        }
    };
    let serving = server.serve(listener, ended, wanted.grace);
    following.during(&server, global, serving).await.map_err(|e| cannot("the page", e))?;
    Ok(End::Finished)
}

/// The store and the agents' files. A first word that is an agent's file is no store.
fn named(wanted: &Wanted, global: &Global) -> (Option<String>, Vec<PathBuf>) {
    let mut files: Vec<_> = global.file.iter().chain(&wanted.files).cloned().collect();
    match &wanted.place {
        Some(word) if is_agent_file(word) => {
            files.insert(0, word.into());
            (global.store.clone(), files)
        }
        word => (word.clone().or_else(|| global.store.clone()), files),
    }
}

/// Builds the server with the agents over the store, whatever stores their files name. No run is resumed without a request.
fn server(
    journal: Arc<dyn Journal>,
    files: &[PathBuf],
    wanted: &Wanted,
    global: &Global,
    following: &mut Following,
) -> Result<Server> {
    let studio = Studio::new().read_only(wanted.read_only);
    let mut server = Server::builder().store(OneTenant::new(journal)).studio(studio).recovery(false);
    for file in files {
        let global = Global { file: Some(file.clone()), ..global.clone() };
        if let Some(found) = team::team_of(&global)? {
            server = server.team(team::served(found, &global)?);
            continue;
        }
        let agent = assemble(&global)?;
        server = server.agent(following.served(agent, !wanted.no_watch)?);
    }
    server.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_the_store_unless_it_is_an_agent() {
        let wanted = |words: &[&str]| Wanted {
            place: words.first().map(|word| (*word).into()),
            files: words.iter().skip(1).map(Into::into).collect(),
            listen: ([127, 0, 0, 1], 0).into(),
            read_only: false,
            no_watch: false,
            grace: std::time::Duration::ZERO,
        };
        let told = |words| {
            let (store, files) = named(&wanted(words), &Global::default());
            (store, files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(told(&["runs.db", "a.yaml"]), (Some("runs.db".into()), vec!["a.yaml".into()]));
        assert_eq!(told(&["a.yaml", "b.yaml"]), (None, vec!["a.yaml".into(), "b.yaml".into()]));
        assert_eq!(told(&["postgres://db/agent"]), (Some("postgres://db/agent".into()), vec![]));
        assert_eq!(told(&[]), (None, vec![]));
    }
}
