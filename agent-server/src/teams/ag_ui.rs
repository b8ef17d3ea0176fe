//! AG-UI of a team, `POST /ag-ui/teams/{team}`: the members are sub-agents of one run.

use std::sync::Arc;

use agent::{
    Event, ExitReason,
    team::{TeamEndReason, TeamEventKind, TeamHistory},
};
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::post,
};
use futures::{Stream, StreamExt, stream};

use super::{
    Teams, TeamsState,
    events::{Item, items},
};
use crate::{
    ag_ui::{AgUiEvent, Projection, RunAgentInput},
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    extract::JsonBody,
    speech::Ending,
    sse::{self, Frame},
};

pub(super) fn router() -> Router<TeamsState> {
    Router::new().route("/ag-ui/teams/{team}", post(run))
}

async fn run(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path(team): Path<String>,
    JsonBody(input): JsonBody<RunAgentInput>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Run)?;
    let served = teams.find(&caller, &team)?;
    let session: Arc<str> = app.new_session(&caller, &input.thread_id)?.to_string().into();
    let said = input.turn()?.said.pop();
    let said = said.ok_or_else(|| ApiError::invalid("'messages' contains no new message of the user"))?;
    let open = app.stream()?;
    let history = TeamHistory::read(&**app.journal(), &session).await?;
    let after = history.records.last().map_or(0, |record| record.seq);
    let live = teams.say(&app, &caller, &served.team, &session, said.parts, None).await?;
    let projection = Projection::new(&input.thread_id, &input.run_id).with_messages(input.messages.clone());
    let items = items(app.clone(), teams.clone(), session.clone(), after, Some(live));
    let told = Told { app, session, run: input.run_id.as_str().into(), projection };
    let frames = told.follow(items).map(move |event| {
        let _ = &open; // held while the stream is read
        Frame::json(&event)
    });
    Ok(sse::plain(frames))
}

/// Encoder of a team's events as one run of the protocol.
struct Told {
    app: App,
    session: Arc<str>,
    /// Run of the front end, which is the parent of the members' runs.
    run: Arc<str>,
    projection: Projection,
}

impl Told {
    fn follow(
        mut self,
        items: impl Stream<Item = Result<Item, ApiError>> + Send + 'static,
    ) -> impl Stream<Item = AgUiEvent> + Send {
        let first = self.projection.start();
        let rest = stream::unfold((Some(self), Box::pin(items)), |(told, mut items)| async move {
            let mut told = told?;
            match items.next().await {
                Some(Ok(Item::Run(event))) => {
                    let events = match (event.member, event.kind) {
                        (Some(member), TeamEventKind::Run(event)) => told.event(&member, *event),
                        _ => Vec::new(),
                    };
                    Some((events, (Some(told), items)))
                }
                Some(Ok(Item::Change(_))) => Some((Vec::new(), (Some(told), items))),
                end => {
                    let error = match end {
                        Some(Ok(Item::End(error))) => error,
                        Some(Err(error)) => Some(error.message().to_owned()),
                        _ => None,
                    };
                    let ending = told.ending(error).await;
                    Some((told.projection.end(&ending), (None, items)))
                }
            }
        });
        stream::iter(first).chain(rest.flat_map(stream::iter))
    }

    /// An event of a member's run, as that of a sub-agent with the member's name.
    fn event(&mut self, member: &Arc<str>, event: Event) -> Vec<AgUiEvent> {
        let mut event = self.app.public(event);
        let mut ids = (*event.ids).clone();
        if ids.depth == 0 {
            (ids.agent, ids.parent_run_id) = (member.clone(), Some(self.run.clone()));
        }
        ids.depth += 1;
        event.ids = Arc::new(ids);
        self.projection.event(&event)
    }

    async fn ending(&self, error: Option<String>) -> Ending {
        let failed = |message: String| Ending::Failed { kind: agent::ErrorKind::Unexpected, message };
        if let Some(error) = error {
            return failed(error);
        }
        let Ok(history) = TeamHistory::read(&**self.app.journal(), &self.session).await else {
            return failed("the run failed: see the server's log".to_owned());
        };
        let state = history.state;
        match state.reason() {
            Some(TeamEndReason::Failed(error)) => failed(error.clone()),
            Some(TeamEndReason::Finished) => {
                Ending::Finished { answer: state.text(), reason: ExitReason::Tool("finish_team".into()) }
            }
            Some(reason) => {
                Ending::Finished { answer: state.text(), reason: ExitReason::Stopped(reason.as_str().into()) }
            }
            None if state.questions().is_empty() => Ending::Paused,
            None => Ending::Interrupted(state.questions().into_iter().map(|asked| asked.question).collect()),
        }
    }
}
