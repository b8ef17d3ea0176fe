//! Twenty misconfigured agents, and the errors of building them.
//!
//! Each is rejected before anything runs, with a message that says what to change. Exits with an
//! error if one is built, or if its message does not name the fix.

mod stacks;

use self::stacks::{Bad, all};

/// Builds twenty misconfigured agents, and prints the error of each.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only build those whose names contain this text.
    #[arg(long, default_value = "")]
    only: String,
}

/// Returns true if all are rejected with the fix.
pub(crate) fn run(args: &Args) -> bool {
    let stacks = all();
    let wanted: Vec<_> = stacks.iter().filter(|bad| bad.name.contains(&args.only)).collect();
    let mut wrong = 0;
    for bad in &wanted {
        match refusal(bad) {
            Ok(message) => println!("{}\n    {message}\n", bad.name),
            Err(problem) => {
                println!("{}\n    WRONG: {problem}\n", bad.name);
                wrong += 1;
            }
        }
    }
    println!("{} of {} stacks were refused with the fix", wanted.len() - wrong, wanted.len());
    wrong == 0
}

/// Returns the error of building a stack.
fn refusal(bad: &Bad) -> Result<String, String> {
    match (bad.stack)().build() {
        Ok(_) => Err("it was built".to_owned()),
        Err(e) if e.message().contains(bad.fix) => Ok(e.message().to_owned()),
        Err(e) => Err(format!("the message does not say \"{}\": {}", bad.fix, e.message())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bad_stack_is_refused_with_a_message_that_says_the_fix() {
        let stacks = all();
        assert_eq!(stacks.len(), 20);
        let problems: Vec<_> = stacks.iter().filter_map(|bad| refusal(bad).err().map(|e| (bad.name, e))).collect();
        assert!(problems.is_empty(), "{problems:#?}");
        let messages: BTreeSet<_> = stacks.iter().map(|bad| refusal(bad).expect("refused")).collect();
        assert_eq!(messages.len(), 20, "each is refused for a reason of its own");
    }
}
