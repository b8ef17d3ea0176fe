//! Remembered decisions: for the session, or permanent.

use agent_core::{GlobalStorage, Key, Result, RunCx};
use serde_json::Value;

use crate::{
    Permissions,
    permissions::{Policy, Rule, RuleStore},
};

const RULES: Key<Vec<Rule>> = Key::new("rules");

/// Returns the earlier decision about a call of a tool with these arguments; `None` if a person must
/// be asked. An approval of the whole tool does not apply to a call that is asked about because
/// `of_arguments` of it.
pub(super) async fn find(
    cx: &RunCx,
    store: Option<&dyn RuleStore>,
    root: Option<&str>,
    (tool, args, of_arguments): (&str, &Value, bool),
) -> Result<Option<Policy>> {
    let mut remembered = Permissions::new();
    remembered.root = root.map(str::to_owned);
    remembered.rules = storage(cx).get(&RULES)?.unwrap_or_default();
    if let Some(store) = store {
        remembered.rules.extend(store.load(cx).await?);
    }
    if of_arguments {
        remembered.rules.retain(|rule| rule.policy == Policy::Deny || rule.has_conditions());
    }
    let policy = remembered.decide(tool, args).policy;
    Ok((policy != Policy::Ask).then_some(policy))
}

/// Remembers a rule, permanently if there is a store.
pub(super) async fn keep(cx: &RunCx, store: Option<&dyn RuleStore>, rule: Rule) -> Result<()> {
    if let Some(store) = store {
        return store.add(cx, rule).await;
    }
    storage(cx).update(&RULES, move |rules| {
        let mut rules = rules.unwrap_or_default();
        if !rules.contains(&rule) {
            rules.push(rule.clone());
        }
        rules
    })?;
    Ok(())
}

/// Separate for each agent of the hierarchy: two may use the same name for different tools.
fn storage(cx: &RunCx) -> GlobalStorage {
    cx.globals().scope("approval").scope(&cx.ids().agent)
}

#[cfg(test)]
mod tests {
    use agent_core::{History, testing::detached_run};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_denial_beats_an_approval_whichever_came_first() {
        let run = detached_run(History::default());
        let (cx, args) = (run.cx(), json!({"x": 1}));
        let of_call = |policy| Rule::new(policy, "f").with_arguments(args.clone());
        for rule in [Rule::allow("f"), of_call(Policy::Deny), of_call(Policy::Allow)] {
            keep(cx, None, rule).await.expect("keeps");
        }
        let found = async |tool, args, by| find(cx, None, None, (tool, &args, by)).await.expect("reads");
        assert_eq!(found("f", args.clone(), false).await, Some(Policy::Deny));
        assert_eq!(found("f", json!({"x": 2}), false).await, Some(Policy::Allow));
        assert_eq!(found("f", json!({"x": 2}), true).await, None, "an approval of the tool lifts no condition");
        assert_eq!(found("g", args.clone(), false).await, None);
    }
}
