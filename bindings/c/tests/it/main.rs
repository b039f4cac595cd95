//! Tests of the header and of the library from the point of view of a C program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use testkit::tool;

fn crate_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Is the header up to date with the library's source? `TRAXTENT_RENEW=1` regenerates it.
#[test]
fn header_is_current() {
    let config = cbindgen::Config::from_file(crate_path("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_path("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = crate_path("include/traxtent.h");
    if env::var_os("TRAXTENT_RENEW").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept == header, "out of date; run with TRAXTENT_RENEW=1");
}

/// Does the example compile without a warning, link with the library, and find its records?
#[test]
fn example_in_c_runs() {
    let cc = tool!("cc");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("powercut");
    let library = env::current_exe().unwrap();
    let library = library.parent().unwrap().join("libtraxtent_c.a");
    let status = Command::new(cc)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(crate_path("include"))
        .arg(crate_path("examples/powercut.c"))
        .arg(&library)
        .args(["-lm", "-lpthread", "-ldl", "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    let run = Command::new(&program).output().unwrap();
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(
        printed.starts_with("all there; a flush takes "),
        "{printed}"
    );
}
