//! Prefixes of well-known API keys.

/// Prefixes of the API keys of well-known services, each with the minimum number of characters that
/// follow. Includes signed tokens (`eyJ`).
///
/// Used for redacting secrets in texts. A text with such a prefix is not always a key: a search
/// should start at word boundaries, and may require digits or capitals in the rest.
pub const API_KEY_PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("whsec_", 16),
    ("gsk_", 20),
    ("xai-", 20),
    ("pplx-", 20),
    ("r8_", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("SG.", 20),
    ("eyJ", 20),
];
