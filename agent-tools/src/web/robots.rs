//! `robots.txt`, as RFC 9309 has it.

use super::pattern::fits;

/// What is kept of the rules, since each is compared with each address: so many bytes of so many for one agent. Beyond that, nothing may be read that
/// the site may not have meant to be read.
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
        let (mut own, mut any) = (None::<Self>, Self::default());
        let (mut for_own, mut for_any, mut in_rules) = (false, false, false);
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
                    let Some(rule) = Rule::read(value, field == "allow") else { continue };
                    if let Some(own) = own.as_mut().filter(|_| for_own) {
                        own.add(rule.clone());
                    }
                    if for_any {
                        any.add(rule);
                    }
                }
                _ => {}
            }
        }
        own.unwrap_or(any)
    }

    /// Adds a rule. Of more than are kept, all are as if the site had closed itself.
    fn add(&mut self, rule: Rule) {
        match self.rules.len() {
            MOST_RULES => self.rules = vec![Rule { pattern: Vec::new(), allow: false }],
            1 if self.rules[0].pattern.is_empty() => {}
            _ => self.rules.push(rule),
        }
    }

    /// True if this path, with its query, may be read: the longest rule decides, and of two as long the one that allows.
    pub(super) fn allows(&self, path: &str) -> bool {
        let path = normal(path);
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow)).is_none_or(|rule| rule.allow)
    }
}

impl Rule {
    /// None for one that decides nothing: nothing allows what is allowed anyway. One that is too long forbids what begins as it does, or allows nothing.
    fn read(value: &str, allow: bool) -> Option<Self> {
        let mut pattern = normal(value);
        let is_cut = pattern.len() > LONGEST_RULE;
        if pattern.is_empty() || (is_cut && allow) {
            return None;
        }
        pattern.truncate(LONGEST_RULE);
        // An escaped byte is whole or not there.
        if let Some(escape) =
            pattern.iter().rposition(|byte| *byte == b'%').filter(|at| is_cut && at + 3 > LONGEST_RULE)
        {
            pattern.truncate(escape);
        }
        Some(Self { pattern, allow })
    }

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

    fn group(agent: &str, rules: usize) -> String {
        let rules = (0..rules).map(|n| format!("Disallow: /{agent}/{n}/\n"));
        format!("User-agent: {agent}\n{}", rules.collect::<String>())
    }

    #[test]
    fn rules_for_other_agents_take_no_room_from_ones_own() {
        let robots = Robots::read(&(group("other", 5_000) + &group("agent-tools", 3)), "agent-tools");
        assert!(!robots.allows("/agent-tools/2/") && robots.allows("/agent-tools/3/") && robots.allows("/other/1/"));
    }

    #[test]
    fn a_site_with_more_rules_than_are_kept_is_closed() {
        assert!(Robots::read(&group("agent-tools", MOST_RULES), "agent-tools").allows("/x"));
        for more in [1, 2, 100] {
            assert!(!Robots::read(&group("agent-tools", MOST_RULES + more), "agent-tools").allows("/x"), "{more}");
        }
    }

    #[test]
    fn a_rule_that_is_too_long_forbids_more_and_allows_nothing() {
        let long = format!("/{}", "a".repeat(300));
        let robots = Robots::read(&format!("User-agent: *\nDisallow: {long}$\nAllow: {long}/open\n"), "x");
        assert!(!robots.allows(&long) && !robots.allows(&format!("{long}/open")) && robots.allows("/aaa"));
        let escaped = format!("/{}%20b", "a".repeat(197));
        assert!(!Robots::read(&format!("User-agent: *\nDisallow: {escaped}"), "x").allows(&escaped));
    }
}
