//! The agents: a lead, and one researcher for each collection.

use agent::{Budget, Caps, Model, Structured, middleware::Delegation, prelude::*};

use crate::{library::Library, report::Report};

const LEAD: &str = "\
You answer a question from collections of documents that only your researchers can read. Ask each researcher that may \
know something, all in one message, with a question that needs no context. Ask again if an answer leaves a gap. Then \
write the report. Cite the sources exactly as the researchers name them, and claim nothing that they did not find.";

const RESEARCHER: &str = "\
You answer questions from a collection of documents. Search before you answer, and search with other words if the \
first search finds little. Answer in a few sentences. Name the source after each statement, exactly as the search \
shows it, such as guide/tools.md:12-20. If the documents do not have the answer, say so.";

/// Name of the lead, among the roles that have a model.
pub(crate) const LEAD_ROLE: &str = "lead";

/// Builds the lead with its researchers. `model` returns the model of a role: the lead, or the
/// collection of a researcher.
pub(crate) fn build<M: Model>(libraries: &[Library], mut model: impl FnMut(&str) -> Result<M>) -> Result<Agent> {
    let mut delegation = Delegation::new();
    for library in libraries {
        let name = library.name();
        let researcher = Agent::builder(name, model(name)?)
            .system(RESEARCHER)
            .tool(library.search_tool())
            .max_steps(8)
            .final_answer(true)
            .build()?;
        delegation = delegation.to(name, format!("Searches the collection '{name}'."), researcher);
    }
    let known = libraries.to_vec();
    Agent::builder(LEAD_ROLE, model(LEAD_ROLE)?)
        .system(LEAD)
        .middleware(delegation)
        .middleware(Structured::<Report>::new()?.check(move |report| report.check(&known)))
        .max_steps(12)
        // For the lead and its researchers together.
        .budget(Budget::new(Caps::default().tokens(500_000).fan_out(12)))
        .build()
}
