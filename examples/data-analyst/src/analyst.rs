//! The agent.

use agent::{Model, middleware::Limits, prelude::*};

use crate::{
    database::Database,
    tools::{Charts, draw_chart, query},
};

const PROMPT: &str = "\
You answer questions about a SQLite database. Get every figure from a query, and look whether a result can be right \
before you use it. Draw a chart for a development over time or a comparison of more than three values. Answer in a \
few sentences, with the figures, the files of the charts, and the query that each figure comes from. The schema:";

/// Builds the agent.
pub(crate) fn build(model: impl Model, database: Database, charts: Charts) -> Result<Agent> {
    Agent::builder("analyst", model)
        .system(format!("{PROMPT}\n\n{}", database.schema()?))
        .tool(query)
        .tool(draw_chart)
        .resource(database)
        .resource(charts)
        .middleware(Limits::new().model_calls(25))
        .build()
}
