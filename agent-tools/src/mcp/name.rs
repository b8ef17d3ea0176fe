//! Tool names that providers accept.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// Maximum length of a name, in characters.
const LONGEST: usize = 64;

/// Maps the server's tool names to names for the model. The result does not depend on the order of
/// the list.
///
/// Characters that providers reject become `_`. If two names collide, the tool whose own name is
/// unchanged keeps it, and the others get a digest suffix.
pub(super) fn all<'a>(prefix: &str, tools: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let plain: BTreeMap<&str, String> = tools.map(|tool| (tool, plain(prefix, tool))).collect();
    let is_own = |tool: &str, name: &str| name.len() <= LONGEST && name.strip_prefix(prefix) == Some(tool);
    let mut shared = BTreeMap::<&str, usize>::new();
    plain.values().for_each(|name| *shared.entry(name).or_default() += 1);
    let (own, others): (Vec<_>, Vec<_>) = plain.iter().partition(|(tool, name)| is_own(tool, name));
    let (alone, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, name)| shared[&***name] == 1);
    let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (tool, _) in own.into_iter().chain(alone) {
        let name = of(prefix, tool, |name| taken.contains(name));
        taken.insert(name.clone());
        names.insert(*tool, name);
    }
    for (tool, name) in others {
        let name = apart(name, tool, |name| taken.contains(name));
        taken.insert(name.clone());
        names.insert(*tool, name);
    }
    names
}

/// Returns the name of one tool; a name that is too long or `taken` gets a suffix with a digest of
/// the server's name of the tool.
pub(super) fn of(prefix: &str, tool: &str, taken: impl Fn(&str) -> bool) -> String {
    let name = plain(prefix, tool);
    if name.len() <= LONGEST && !name.is_empty() && !taken(&name) { name } else { apart(&name, tool, taken) }
}

fn plain(prefix: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    prefix.chars().chain(tool.chars()).map(plain).collect()
}

/// Adds a digest of the server's name of the tool, repeatedly if needed: a server may have chosen a
/// name that collides with the result.
fn apart(name: &str, tool: &str, taken: impl Fn(&str) -> bool) -> String {
    let time = |time: u32| {
        let digest = Sha256::new().chain_update(tool).chain_update(time.to_le_bytes()).finalize();
        let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        format!("{}_{digest}", &name[..name.len().min(LONGEST - digest.len() - 1)])
    };
    (0..).map(time).find(|name| !taken(name)).expect("there are more names than tools")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{all, of};

    #[test]
    fn every_name_is_one_that_providers_take() {
        assert_eq!(of("git_", "log", |_| false), "git_log");
        assert_eq!(of("git_", "log.all/now", |_| false), "git_log_all_now");
        let long = of("a_", &"é".repeat(200), |_| false);
        assert!(long.len() <= 64 && long.starts_with("a___"), "{long}");
        let first = of("a_", "x.y", |n| n == "a_x_y");
        let chosen_too = of("a_", "x.y", |n| n == "a_x_y" || n == first);
        assert!(chosen_too != first && chosen_too.starts_with("a_x_y_"), "{chosen_too}");
    }

    #[test]
    fn of_names_that_become_the_same_the_tool_that_was_named_so_has_it() {
        let names = all("a_", ["x.y", "x_y", "x/y", "z.z"].into_iter());
        assert_eq!((&*names["x_y"], &*names["z.z"]), ("a_x_y", "a_z_z"));
        assert!(names["x.y"].starts_with("a_x_y_") && names["x/y"].starts_with("a_x_y_"), "{names:?}");
    }

    proptest! {
        #[test]
        fn a_tool_has_the_same_name_whatever_the_order_and_no_two_have_one(
            tools in prop::collection::btree_set("[ab._/é]{0,3}|[ab.]{60,70}", 0..12).prop_map(Vec::from_iter).prop_shuffle()
        ) {
            let names = all("p_", tools.iter().map(String::as_str));
            prop_assert_eq!(&names, &all("p_", tools.iter().rev().map(String::as_str)));
            prop_assert_eq!(names.values().collect::<BTreeSet<_>>().len(), tools.len());
            prop_assert!(names.values().all(|name| name.len() <= 64 && name.is_ascii()));
        }
    }
}
