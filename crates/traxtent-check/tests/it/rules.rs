//! The list of rules, and the page that documents them.

use std::collections::BTreeSet;

use traxtent_check::{Rule, Severity};

/// Does the page list every rule with its severity, and no rule that does not exist?
#[test]
fn page_lists_the_rules() {
    let page =
        std::fs::read_to_string(testkit::workspace().join("docs/reference/check.md")).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let cells = rows.map(|(id, rest)| (id, rest.split(" | ").next().unwrap()));
    // Other tables of the page have fields, not severities, in their second column.
    let names = Severity::all().map(Severity::name);
    let listed: BTreeSet<(&str, &str)> =
        cells.filter(|(_, second)| names.contains(second)).collect();
    let rules: BTreeSet<(&str, &str)> = Rule::all()
        .iter()
        .map(|rule| (rule.id(), rule.severity().name()))
        .collect();
    assert_eq!(listed, rules);
}

/// Do names parse to their rules, and are unknown names refused? Are severities ordered?
#[test]
fn names() {
    for rule in Rule::all() {
        assert_eq!(rule.id().parse(), Ok(*rule));
    }
    assert!("partition".parse::<Rule>().is_err());
    assert!(Severity::Info < Severity::Warning && Severity::Warning < Severity::Fault);
}
