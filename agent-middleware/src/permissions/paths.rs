//! Matching of paths. Symbolic links are the tool's responsibility: nothing is looked up on disk.

use super::{Fit, wildcard};

/// Matches a path against the patterns after resolving `.` and `..`: relative to `root` if it is
/// below it, and as an absolute path too.
pub(super) fn fit(path: &str, patterns: &[String], root: Option<&str>) -> Fit {
    let Some(forms) = forms(path, root) else { return Fit::Unclear };
    let fits = |pattern: &String| forms.iter().any(|form| wildcard::fits(pattern, form, Some('/')));
    if patterns.iter().any(fits) { Fit::Yes } else { Fit::No }
}

/// Returns the forms in which a pattern may spell a path; `None` if its target cannot be
/// determined.
fn forms(path: &str, root: Option<&str>) -> Option<Vec<String>> {
    let strange = path.is_empty() || path.starts_with('~') || path.contains(['\0', '\\', '$', '`']);
    if strange {
        return None;
    }
    let root: Option<Vec<&str>> = root.and_then(|root| resolved(&[], root));
    let (start, is_absolute) = (root.clone().unwrap_or_default(), path.starts_with('/') || root.is_some());
    let parts = resolved(if path.starts_with('/') { &[] } else { &start }, path)?;
    let mut forms = Vec::new();
    if is_absolute {
        forms.push(format!("/{}", parts.join("/")));
        let below = root.as_ref().and_then(|root| parts.strip_prefix(root.as_slice()));
        forms.extend(below.map(|below| if below.is_empty() { ".".to_owned() } else { below.join("/") }));
    } else {
        forms.push(if parts.is_empty() { ".".to_owned() } else { parts.join("/") });
    }
    Some(forms)
}

/// Returns the components of `path`, resolved from `start`; `None` if it leaves the known part.
fn resolved<'a>(start: &[&'a str], path: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = start.to_vec();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // The parent of the root directory is the root itself.
            ".." => drop(parts.pop().or((path.starts_with('/') || !start.is_empty()).then_some(""))?),
            part => parts.push(part),
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(path: &str, root: Option<&str>) -> Option<Vec<String>> {
        forms(path, root)
    }

    #[test]
    fn a_path_is_judged_by_where_it_leads() {
        let of = |forms: &[&str]| Some(forms.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(all("./src//a/../b.rs", None), of(&["src/b.rs"]));
        assert_eq!(all("../x", None), None, "it leaves what is known");
        assert_eq!(all("/a/../etc/passwd", None), of(&["/etc/passwd"]));
        assert_eq!(all("/../..", None), of(&["/"]));
        assert_eq!(all("src/b.rs", Some("/app")), of(&["/app/src/b.rs", "src/b.rs"]));
        assert_eq!(all("/app/src/../b.rs", Some("/app/")), of(&["/app/b.rs", "b.rs"]));
        assert_eq!(all("../etc/passwd", Some("/app")), of(&["/etc/passwd"]));
        assert_eq!(all("/apps/a", Some("/app")), of(&["/apps/a"]), "not below it");
        for strange in ["", "~/x", "$HOME/x", "a\\b", "a\0b"] {
            assert_eq!(all(strange, Some("/app")), None, "{strange:?}");
        }
    }
}
