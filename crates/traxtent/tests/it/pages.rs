//! Pages in a browser: at the widths of a phone and of a computer screen, in light and dark mode.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::command::{prints, traxtent};

/// The script that runs in each page and reports its measurements.
const SCRIPT: &str = include_str!("pages.js");

/// The widths of a phone and of a computer screen, in pixels.
const WIDTHS_PX: [u32; 2] = [420, 1200];

/// The minimum contrast of text (WCAG 2.1, 1.4.3).
const CONTRAST_MIN: f64 = 4.5;

/// The minimum size of text in pixels.
const TEXT_MIN_PX: f64 = 11.0;

/// At each width, in light and dark mode, can all text be read without scrolling sideways, and is
/// the console free of errors?
#[test]
fn pages_are_readable() {
    if !cfg!(all(feature = "plot", feature = "lab")) {
        testkit::skip!("this build has no pages with pictures; it needs `plot` and `lab`");
    }
    let chromium = testkit::tool!("chromium");
    let folder = tempfile::tempdir().unwrap();
    let pages = pages(folder.path());
    let around = folder.path().join("around.html");
    fs::write(&around, wrapper(&pages)).unwrap();
    for (scheme, dark) in [("0", true), ("1", false)] {
        let output = Command::new(&chromium)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .args(["--enable-logging=stderr", "--virtual-time-budget=10000"])
            .arg("--window-size=1300,900")
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join(scheme).display()
            ))
            .arg(format!("file://{}", around.display()))
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("CONSOLE"), "{errors}");
        let dom = String::from_utf8_lossy(&output.stdout);
        let found: Vec<Value> = dom
            .split("<pre>")
            .skip(1)
            .filter_map(|rest| serde_json::from_str(rest.split("</pre>").next()?).ok())
            .collect();
        assert_eq!(
            found.len(),
            pages.len() * WIDTHS_PX.len(),
            "{errors}\n{dom}"
        );
        for page in found {
            let number = |name: &str| page[name].as_f64().unwrap();
            assert_eq!(page["dark"], dark, "{page}");
            assert!(number("texts") > 100.0, "{page}");
            assert!(number("scroll") <= number("width"), "{page}");
            assert!(number("least") >= CONTRAST_MIN, "{page}");
            assert!(number("small") >= TEXT_MIN_PX, "{page}");
        }
    }
}

/// Returns the demo's page and one of the lab.
fn pages(folder: &Path) -> [String; 2] {
    let demo = folder.join("demo");
    prints(&["demo", "--out", demo.to_str().unwrap()]);
    let lab = folder.join("lab.html");
    let path = lab.to_str().unwrap();
    // Lines with published points, bars, a missed claim, and a table.
    let report = traxtent(&[
        "lab", "report", "T1", "T2", "T9", "T13", "--quick", "--out", path,
    ]);
    assert_eq!(report.status, 1, "{}", report.err);
    let lab = fs::read_to_string(&lab).unwrap();
    for text in ["A quick run", "✗ missed", "✓ met"] {
        assert!(lab.contains(text), "{text}");
    }
    let pages = [fs::read_to_string(demo.join("report.html")).unwrap(), lab];
    for page in &pages {
        assert!(!page.contains('`'), "a literal backtick");
    }
    pages
}

/// Returns a page that shows each page at each width, and prints what their scripts report.
fn wrapper(pages: &[String]) -> String {
    let mut body = String::new();
    for page in pages {
        let page = page.replace("</body>", &format!("<script>{SCRIPT}</script></body>"));
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        for width in WIDTHS_PX {
            body += &format!(
                "<iframe width=\"{width}\" height=\"900\" style=\"border:0\" srcdoc=\"{page}\"></iframe>\n"
            );
        }
    }
    format!(
        "<!DOCTYPE html>\n<meta name=\"color-scheme\" content=\"light dark\">\n<script>\n\
         addEventListener('message', event => {{\n\
         const shown = document.createElement('pre');\n\
         shown.textContent = JSON.stringify(event.data);\n\
         document.body.append(shown);\n\
         }});\n</script>\n<body>\n{body}</body>\n"
    )
}
