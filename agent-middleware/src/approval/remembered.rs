//! Remembered decisions: for the session, or permanent.

use agent_core::{GlobalStorage, Key, Result, RunCx};
use serde_json::Value;

use super::Remember;
use crate::{
    Permissions,
    permissions::{Policy, Rule, RuleStore},
};

const RULES: Key<Vec<Rule>> = Key::new("rules");

/// Returns the earlier decision about such a call; `None` if a person must be asked.
pub(super) async fn find(
    cx: &RunCx,
    store: Option<&dyn RuleStore>,
    root: Option<&str>,
    tool: &str,
    args: &Value,
) -> Result<Option<Policy>> {
    let mut remembered = Permissions::new();
    remembered.root = root.map(str::to_owned);
    remembered.rules = storage(cx).get(&RULES)?.unwrap_or_default();
    if let Some(store) = store {
        remembered.rules.extend(store.load(cx).await?);
    }
    let policy = remembered.decide(tool, args).policy;
    Ok((policy != Policy::Ask).then_some(policy))
}

/// Remembers a decision, permanently if there is a store.
pub(super) async fn keep(
    cx: &RunCx,
    store: Option<&dyn RuleStore>,
    (tool, args): (&str, &Value),
    scope: Remember,
    policy: Policy,
) -> Result<()> {
    let rule = match scope {
        Remember::Tool => Rule::new(policy, tool),
        Remember::Call => Rule::new(policy, tool).with_arguments(args.clone()),
    };
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
        for (scope, policy) in
            [(Remember::Tool, Policy::Allow), (Remember::Call, Policy::Deny), (Remember::Call, Policy::Allow)]
        {
            keep(cx, None, ("f", &args), scope, policy).await.expect("keeps");
        }
        let found = async |tool, args| find(cx, None, None, tool, &args).await.expect("reads");
        assert_eq!(found("f", args.clone()).await, Some(Policy::Deny));
        assert_eq!(found("f", json!({"x": 2})).await, Some(Policy::Allow));
        assert_eq!(found("g", args.clone()).await, None);
    }
}
