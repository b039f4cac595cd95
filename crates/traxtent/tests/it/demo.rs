//! `traxtent demo`.

use std::fs;

use super::command::{json, prints};

/// Does the demo write its report, with the claims if this build has the lab, and write the same
/// report when it is repeated?
#[test]
fn writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let report = json(&["demo", "--json", "--out", out]);
    let html = fs::read_to_string(report["report"].as_str().unwrap()).unwrap();
    assert!(html.contains("</html>"));
    if cfg!(feature = "lab") {
        let claims = report["claims"].as_array().unwrap();
        for id in ["T2", "T8a", "T8b", "T9a", "T11a", "T12a", "T13a", "T15a"] {
            assert!(claims.iter().any(|claim| claim["id"] == id), "{id}");
        }
        assert!(html.contains("T8b"));
    } else {
        assert!(report["claims"].is_null());
        assert!(html.contains("rebuild it with the feature `lab`"));
    }
    let text = prints(&["demo", "--out", out]);
    assert!(text.contains("What to try next"));
    assert_eq!(
        fs::read_to_string(report["report"].as_str().unwrap()).unwrap(),
        html
    );
}
