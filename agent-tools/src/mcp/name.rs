//! Names of tools that providers take.

use sha2::{Digest, Sha256};

/// The most characters of a name.
const LONGEST: usize = 64;

/// The name that the model is told of the server's tool `tool`: what providers do not take becomes `_`, and a name that is too
/// long or `taken` ends in a digest of the server's own.
pub(super) fn of(prefix: &str, tool: &str, taken: impl Fn(&str) -> bool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = prefix.chars().chain(tool.chars()).map(plain).collect();
    if name.len() <= LONGEST && !name.is_empty() && !taken(&name) {
        return name;
    }
    // A server may have chosen the name that comes out, too: two tools of one name would fail the run.
    let apart = |time: u32| {
        let digest = Sha256::new().chain_update(tool).chain_update(time.to_le_bytes()).finalize();
        let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        format!("{}_{digest}", &name[..name.len().min(LONGEST - digest.len() - 1)])
    };
    (0..).map(apart).find(|name| !taken(name)).expect("there are more names than tools")
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn every_name_is_one_that_providers_take_and_no_two_are_the_same() {
        assert_eq!(of("git_", "log", |_| false), "git_log");
        assert_eq!(of("git_", "log.all/now", |_| false), "git_log_all_now");
        let long = "é".repeat(200);
        let names =
            [of("a_", &long, |_| false), of("a_", &format!("{long}b"), |_| false), of("a_", "x.y", |n| n == "a_x_y")];
        let first = names[2].clone();
        let chosen_too = of("a_", "x.y", |n| n == "a_x_y" || n == first);
        assert!(chosen_too != first && chosen_too.starts_with("a_x_y_"), "{chosen_too}");
        for (i, name) in names.iter().enumerate() {
            assert!(name.len() <= 64 && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'), "{name}");
            assert!(!names[..i].contains(name));
        }
    }
}
