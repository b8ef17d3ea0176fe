//! Served agents follow their files.

use std::time::Duration;

use agent::{Result, config::Watched};
use agent_server::{App, Served, Server};

use crate::{
    cli::Global,
    load::{Assembled, assembled},
    output::{explained, plain},
};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Agents as they are served, and the files that they follow.
#[derive(Default)]
pub(crate) struct Following(Vec<Watched>);

impl Following {
    /// The agent as it is served; its files are followed from now on, if they are to be.
    ///
    /// # Errors
    /// If its parts do not go together.
    pub(crate) fn served(&mut self, mut agent: Assembled, follows: bool) -> Result<Served> {
        self.0.extend(agent.files.take().filter(|_| follows));
        served(agent)
    }

    /// Gives the server what the files say whenever they change, while `serving` is under way. Files that became wrong change nothing,
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

fn served(Assembled { builder, description, .. }: Assembled) -> Result<Served> {
    Ok(Served::new(builder.build()?).description(description.unwrap_or_default()))
}
