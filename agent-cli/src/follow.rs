//! Served agents follow their files.

use std::time::Duration;

use agent::{Result, config::Watched};
use agent_server::{App, Served, Server};

use crate::{
    cli::Global,
    load::{Assembled, assembled},
    output::{explained, plain},
};

/// Interval of checks for changed files.
const LOOK: Duration = Duration::from_secs(1);

/// Agents as they are served, and the files that they follow.
#[derive(Default)]
pub(crate) struct Following(Vec<Watched>);

impl Following {
    /// Returns the served agent, and follows its files if requested.
    ///
    /// # Errors
    /// If its parts do not go together.
    pub(crate) fn served(&mut self, mut agent: Assembled, follows: bool) -> Result<Served> {
        self.0.extend(agent.files.take().filter(|_| follows));
        served(agent)
    }

    /// Updates the server whenever the files change, until `serving` ends. Invalid files change nothing,
    /// and it is said why.
    pub(crate) async fn during<T>(mut self, server: &Server, global: &Global, serving: impl Future<Output = T>) -> T {
        let looks = async {
            let mut looks = tokio::time::interval(LOOK);
            loop {
                looks.tick().await;
                for files in &mut self.0 {
                    look(files, server.app(), global);
                }
            }
        };
        tokio::select! {
            ended = serving => ended,
            () = looks => unreachable!("it looks for ever"),
        }
    }
}

fn look(files: &mut Watched, app: &App, global: &Global) {
    let Some(changed) = files.changed() else { return };
    let file = files.path().display();
    let replaced = changed.map_err(Into::into).and_then(|loaded| app.replace(served(assembled(loaded, global)?)?));
    let said = match replaced {
        Ok(()) => format!("agent: {file} changed; runs that begin from now on have the agent as it is there"),
        Err(error) => format!("agent: {file} changed, and is not taken:\n{}", explained(&error).trim_end()),
    };
    eprintln!("{}", plain(&said));
}

fn served(assembled: Assembled) -> Result<Served> {
    Ok(Served::new(assembled.build()?).description(assembled.description.unwrap_or_default()))
}
