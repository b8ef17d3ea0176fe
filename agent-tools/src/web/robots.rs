//! `robots.txt`, as RFC 9309 has it.

use super::pattern::fits;

/// Longer rules, in bytes, and more of them are left out: each is compared with each address.
const LONGEST_RULE: usize = 200;
const MOST_RULES: usize = 1_000;

/// Most bytes of a `robots.txt` that are read; RFC 9309 wants 500 KiB at least.
pub(super) const MOST_BYTES: usize = 512 << 10;

/// What a site lets be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Robots {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    pattern: Vec<u8>,
    allow: bool,
}

impl Robots {
    /// Everything.
    pub(super) fn all() -> Self {
        Self::default()
    }

    /// Reads the groups for this agent, or else those for all. The agent is a word: `agent-tools`.
    pub(super) fn read(text: &str, agent: &str) -> Self {
        let (mut own, mut any) = (None::<Vec<Rule>>, Vec::new());
        let (mut for_own, mut for_any, mut in_rules, mut rules) = (false, false, false, 0);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match field.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if std::mem::take(&mut in_rules) {
                        (for_own, for_any) = (false, false);
                    }
                    let word = value.split(|c: char| !(c.is_ascii_alphanumeric() || "-_*".contains(c))).next();
                    match word.unwrap_or_default() {
                        "*" => for_any = true,
                        word if word.eq_ignore_ascii_case(agent) => {
                            for_own = true;
                            own.get_or_insert_default();
                        }
                        _ => {}
                    }
                }
                field @ ("allow" | "disallow") => {
                    in_rules = true;
                    // Nothing allows what is allowed anyway; no address is as long as the others.
                    if value.is_empty() || value.len() > LONGEST_RULE || rules >= MOST_RULES {
                        continue;
                    }
                    rules += 1;
                    let rule = Rule { pattern: normal(value), allow: field == "allow" };
                    if let Some(own) = own.as_mut().filter(|_| for_own) {
                        own.push(rule.clone());
                    }
                    if for_any {
                        any.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self { rules: own.unwrap_or(any) }
    }

    /// True if this path, with its query, may be read: the longest rule decides, and of two as long the one that allows.
    pub(super) fn allows(&self, path: &str) -> bool {
        let path = normal(path);
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow)).is_none_or(|rule| rule.allow)
    }
}

impl Rule {
    fn fits(&self, path: &[u8]) -> bool {
        match self.pattern.strip_suffix(b"$") {
            Some(whole) => fits(whole, path),
            None => fits(&[&self.pattern, &b"*"[..]].concat(), path),
        }
    }
}

/// A path of which each byte is written in one way only: what needs no `%` has none.
fn normal(path: &str) -> Vec<u8> {
    let bytes = path.as_bytes();
    let (mut normal, mut i) = (Vec::with_capacity(bytes.len()), 0);
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%')
            .then(|| bytes.get(i + 1..i + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let (byte, width) = escaped.map_or((bytes[i], 1), |byte| (byte, 3));
        let plain =
            byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (width == 1 && byte.is_ascii() && byte != b'%');
        if plain {
            normal.push(byte);
        } else {
            normal.extend(format!("%{byte:02X}").bytes());
        }
        i += width;
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_of_the_agents_own_group_decides() {
        let text = "\u{feff}User-agent: *\nDisallow: /\n\nUser-Agent: other\nUser-agent: Agent-Tools/2.0 # us\nDisallow: /private\n\
                    Allow: /private/open\nDisallow: /*.zip$\nDisallow: /same\nAllow: /same\nDisallow:\nDisallow: /caf%C3%A9\n\
                    Disallow: /a%2fb\nSitemap: https://example.org/map\n\nuser-agent: agent-tools\ndisallow: /more";
        let robots = Robots::read(text, "agent-tools");
        let cases = [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a.zip", false),
            ("/a.zip?x", true),
            ("/same", true),
            ("/café", false),
            ("/caf%c3%a9/x", false),
            ("/more/x", false),
            ("/a/b", true),
            ("/a%2Fb", false),
            ("/%70rivate", false),
        ];
        for (path, expected) in cases {
            assert_eq!(robots.allows(path), expected, "{path}");
        }
        assert!(!Robots::read(text, "someone").allows("/x"), "the group for all");
        assert!(Robots::read("", "x").allows("/") && Robots::all().allows("/"));
        assert!(Robots::read("User-agent: a\nUser-agent: b\nDisallow: /x", "a").allows("/y"));
        assert!(!Robots::read("User-agent: a\nUser-agent: b\nDisallow: /x", "a").allows("/x"), "two agents, one group");
    }
}
